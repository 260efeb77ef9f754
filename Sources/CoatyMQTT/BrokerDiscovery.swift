#if os(Linux)
    import Coaty
    import Foundation

    /// Finds an available broker by mDNS, and selects the endpoint that accepts a TCP connection first.
    ///
    /// A host may announce addresses of networks that are not reachable from here, for which connect(2) would block for
    /// minutes.
    struct BrokerDiscovery {
        /// Maximum time for an endpoint to accept a connection.
        static let connectTimeout = Duration.seconds(3)

        let limit: Duration
        let wakePipe: WakePipe
        /// Returns whether the thread must end.
        let isCancelled: () -> Bool

        /// - Returns: nil if the thread must end.
        func findBroker() throws(ConnectionError) -> BrokerEndpoint? {
            let endpoints: [BrokerEndpoint]
            do throws(MDNSError) {
                let browser = try MDNSBrowser(wakePipe: wakePipe)
                endpoints = try browser.browse(for: limit, isCancelled: isCancelled)
            } catch {
                throw ConnectionError(.noBrokerFound, error.description)
            }
            if isCancelled() { return nil }
            guard !endpoints.isEmpty else {
                throw ConnectionError(
                    .noBrokerFound,
                    "no broker has answered by mDNS as \(MDNS.brokerType) within \(limit)"
                )
            }
            if let first = firstReachable(endpoints) { return first }
            if isCancelled() { return nil }
            let addresses = endpoints.map(\.description).joined(separator: ", ")
            throw ConnectionError(.noBrokerFound, "mDNS has found brokers, but none can be reached: \(addresses)")
        }

        private func firstReachable(_ endpoints: [BrokerEndpoint]) -> BrokerEndpoint? {
            var descriptors = endpoints.map { pollfd(fd: connecting(to: $0), events: Int16(POLLOUT), revents: 0) }
            // poll(2) ignores negative descriptors.
            defer { for descriptor in descriptors where descriptor.fd >= 0 { close(descriptor.fd) } }
            descriptors.append(pollfd(fd: wakePipe.readEnd, events: Int16(POLLIN), revents: 0))
            defer { descriptors.removeLast() }
            let deadline = ContinuousClock.now + Self.connectTimeout
            while descriptors.dropLast().contains(where: { $0.fd >= 0 }) {
                let left = deadline - .now
                guard left > .zero else { return nil }
                wakePipe.prepareToSleep()
                if isCancelled() { return nil }
                poll(&descriptors, nfds_t(descriptors.count), Int32(left / .milliseconds(1)) + 1)
                wakePipe.didWake(isReadable: descriptors[endpoints.count].revents != 0)
                for index in endpoints.indices where descriptors[index].revents != 0 {
                    if isConnected(descriptors[index].fd) { return endpoints[index] }
                    close(descriptors[index].fd)
                    descriptors[index].fd = -1
                    descriptors[index].revents = 0
                }
            }
            return nil
        }

        /// Returns a connecting socket; -1 if connecting has failed immediately.
        private func connecting(to endpoint: BrokerEndpoint) -> Int32 {
            var hints = addrinfo()
            hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(endpoint.address, "\(endpoint.port)", &hints, &list) == 0, let info = list?.pointee else {
                return -1
            }
            defer { freeaddrinfo(list) }
            let type = info.ai_socktype | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            let descriptor = socket(info.ai_family, type, info.ai_protocol)
            guard descriptor >= 0 else { return -1 }
            if connect(descriptor, info.ai_addr, info.ai_addrlen) != 0, errno != EINPROGRESS {
                close(descriptor)
                return -1
            }
            return descriptor
        }

        private func isConnected(_ descriptor: Int32) -> Bool {
            var code: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0
        }
    }
#endif
