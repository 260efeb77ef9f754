#if os(Linux)
    import CAvahi
    import Foundation

    /// Searches for brokers by mDNS, on the calling thread.
    ///
    /// Each browser starts without a cache: every result comes from a current answer.
    final class MDNSBrowser {
        /// The time to wait for further answers after the first: answers for shared records arrive within 20 to 120 ms
        /// (RFC 6762, section 6).
        static let settleTime = Duration.milliseconds(200)
        /// Maximum number of resolved services, where each interface and protocol counts separately; further ones are
        /// ignored.
        static let maximumServices = 64
        /// Maximum number of stored endpoints; further ones are ignored.
        static let maximumEndpoints = 64

        /// The callback context of one service. The browser keeps it as long as avahi's server exists.
        private final class Service {
            unowned let browser: MDNSBrowser
            let name: String
            var port: UInt16 = 0

            init(browser: MDNSBrowser, name: String) {
                self.browser = browser
                self.name = name
            }
        }

        private let wakePipe: WakePipe
        private let poll: OpaquePointer
        private var server: OpaquePointer?
        private var services: [Service] = []
        private var endpoints: Set<BrokerEndpoint> = []

        /// Sends the first query.
        ///
        /// - Parameter wakePipe: the pipe that wakes ``browse(for:isCancelled:)``.
        init(wakePipe: WakePipe) throws(MDNSError) {
            self.wakePipe = wakePipe
            guard let poll = avahi_simple_poll_new() else { throw MDNSError("mDNS: out of memory") }
            self.poll = poll
            let api = avahi_simple_poll_get(poll)
            // The pipe, and this object that owns it, outlive the watch, which is freed with the event loop.
            _ = api?.pointee.watch_new(
                api,
                wakePipe.readEnd,
                AVAHI_WATCH_IN,
                { _, _, _, context in MDNSBrowser.from(context)?.wakePipe.didWake(isReadable: true) },
                Unmanaged.passUnretained(self).toOpaque()
            )
            let server = try MDNS.makeServer(api)
            self.server = server
            let browser = avahi_s_service_browser_new(
                server,
                MDNS.everyInterface,
                MDNS.anyProtocol,
                MDNS.brokerType,
                nil,
                AVAHI_LOOKUP_USE_MULTICAST,
                { _, interface, version, event, name, _, _, _, context in
                    guard event == AVAHI_BROWSER_NEW, let name else { return }
                    MDNSBrowser.from(context)?.found(String(cString: name), interface, version)
                },
                Unmanaged.passUnretained(self).toOpaque()
            )
            guard browser != nil else { throw error(server) }
        }

        deinit {
            // Also frees everything that was created with it.
            if let server { avahi_server_free(server) }
            avahi_simple_poll_free(poll)
        }

        /// Runs until brokers have answered or the time is over.
        ///
        ///   - limit: the maximum time to wait for the first answer.
        ///   - isCancelled: called whenever the pipe has woken the thread; true ends the search immediately.
        /// - Returns: the brokers that were found, in the order of preference.
        func browse(for limit: Duration, isCancelled: () -> Bool) throws(MDNSError) -> [BrokerEndpoint] {
            var deadline = ContinuousClock.now + limit
            var isSettling = false
            while true {
                if !isSettling, !endpoints.isEmpty {
                    isSettling = true
                    deadline = min(deadline, .now + Self.settleTime)
                }
                let left = deadline - .now
                guard left > .zero else { break }
                wakePipe.prepareToSleep()
                if isCancelled() { break }
                let code = avahi_simple_poll_iterate(poll, Int32(clamping: Int64(left / .milliseconds(1)) + 1))
                let failure = errno
                wakePipe.didWake(isReadable: false)
                guard code == 0 || failure == EINTR else {
                    throw MDNSError("mDNS: \(String(cString: strerror(failure)))")
                }
            }
            return endpoints.sorted()
        }

        private static func from(_ context: UnsafeMutableRawPointer?) -> MDNSBrowser? {
            context.map { Unmanaged<MDNSBrowser>.fromOpaque($0).takeUnretainedValue() }
        }

        private func error(_ server: OpaquePointer) -> MDNSError {
            MDNSError("mDNS: \(String(cString: avahi_strerror(avahi_server_errno(server))))")
        }

        private func found(_ name: String, _ interface: AvahiIfIndex, _ version: AvahiProtocol) {
            guard services.count < Self.maximumServices else { return }
            let service = Service(browser: self, name: name)
            services.append(service)
            avahi_s_service_resolver_new(
                server,
                interface,
                version,
                name,
                MDNS.brokerType,
                nil,
                MDNS.anyProtocol,
                AvahiLookupFlags(
                    AVAHI_LOOKUP_USE_MULTICAST.rawValue | AVAHI_LOOKUP_NO_TXT.rawValue
                        | AVAHI_LOOKUP_NO_ADDRESS.rawValue
                ),
                { _, interface, version, event, _, _, _, host, _, port, _, _, context in
                    guard event == AVAHI_RESOLVER_FOUND, let host, let context else { return }
                    let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
                    service.browser.resolved(service, host, port, interface, version)
                },
                Unmanaged.passUnretained(service).toOpaque()
            )
        }

        /// Resolves all addresses of a service. avahi's resolver returns only one, but a host with several networks may
        /// announce an address that can't be reached from here.
        private func resolved(
            _ service: Service,
            _ host: UnsafePointer<CChar>,
            _ port: UInt16,
            _ interface: AvahiIfIndex,
            _ version: AvahiProtocol
        ) {
            let isFirst = service.port == 0
            service.port = port
            guard isFirst, port > 0 else { return }
            for type in [AVAHI_DNS_TYPE_A, AVAHI_DNS_TYPE_AAAA] {
                let key = avahi_key_new(host, UInt16(AVAHI_DNS_CLASS_IN), UInt16(type))
                guard let key else { continue }
                defer { avahi_key_unref(key) }
                avahi_s_record_browser_new(
                    server,
                    interface,
                    version,
                    key,
                    AVAHI_LOOKUP_USE_MULTICAST,
                    { _, interface, _, event, record, _, context in
                        guard event == AVAHI_BROWSER_NEW, let record = record?.pointee, let context else { return }
                        let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
                        service.browser.add(record, of: service, interface)
                    },
                    Unmanaged.passUnretained(service).toOpaque()
                )
            }
        }

        private func add(_ record: AvahiRecord, of service: Service, _ interface: AvahiIfIndex) {
            var address = AvahiAddress()
            var scope = ""
            let isIPv6 = record.key.pointee.type == AVAHI_DNS_TYPE_AAAA
            if isIPv6 {
                address.proto = AvahiProtocol(AVAHI_PROTO_INET6)
                address.data.ipv6 = record.data.aaaa.address
                let bytes = address.data.ipv6.address
                // A link-local address (RFC 4291, section 2.5.6).
                if bytes.0 == 0xFE, bytes.1 & 0xC0 == 0x80 {
                    var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
                    guard if_indextoname(UInt32(bitPattern: interface), &name) != nil else { return }
                    scope = "%" + text(name)
                }
            } else {
                address.proto = AvahiProtocol(AVAHI_PROTO_INET)
                address.data.ipv4 = record.data.a.address
            }
            var name = [CChar](repeating: 0, count: Int(AVAHI_ADDRESS_STR_MAX))
            avahi_address_snprint(&name, name.count, &address)
            guard endpoints.count < Self.maximumEndpoints else { return }
            endpoints.insert(
                BrokerEndpoint(
                    service: service.name,
                    isIPv6: isIPv6,
                    address: text(name) + scope,
                    port: service.port
                )
            )
        }

        private func text(_ characters: [CChar]) -> String {
            String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }
#endif
