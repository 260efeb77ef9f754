import Base
import Foundation
import Glibc
import Logging

/// The programs, the account, the configuration and the directory for starting mosquitto.
struct BrokerLauncher {
    /// The directory of a broker's configuration, which is needed until the broker answers. It belongs to the gateway's
    /// account: a broker with another account may read it, but can't create files that a gateway running as root would
    /// use.
    struct Directory {
        let path: String

        func remove() {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// Maximum size of an MQTT packet that the broker accepts, in bytes.
    static let maxPacketSize = 16 << 20
    /// Maximum number of messages that the broker queues for a slow client; further messages to it are dropped.
    static let maxQueuedMessages = 10_000
    /// The same bound in bytes.
    static let maxQueuedBytes = 64 << 20
    /// Accounts to run under instead of root, the first that exists; mosquitto itself uses the same two.
    static let accounts = ["mosquitto", "nobody"]

    private let mosquitto: String
    private let setpriv: String
    private let account: (uid: uid_t, gid: gid_t)?

    init(configuration: EmbeddedBroker.Configuration) throws {
        mosquitto = try Self.find(configuration.executable ?? "mosquitto")
        setpriv = try Self.find("setpriv")
        account = geteuid() == 0 ? Self.accounts.lazy.compactMap(Self.account).first : nil
    }

    /// Starts a broker that will listen on `address`; it may not accept connections yet when this returns.
    ///
    /// The child is killed when the calling thread ends; see ``BrokerSupervisor``.
    func spawn(
        on address: EmbeddedBroker.Address,
        in directory: Directory,
        awaitedText: String,
        logger: Logger
    ) throws -> BrokerChild {
        let configurationFile = directory.path + "/mosquitto.conf"
        try write(configurationText(for: address), to: configurationFile)

        var arguments = [setpriv]
        // A change of user clears the parent-death signal. Therefore mosquitto must not drop root privileges itself: it
        // is started without them.
        if let account {
            arguments += ["--reuid", "\(account.uid)", "--regid", "\(account.gid)", "--clear-groups"]
        }
        arguments += ["--pdeathsig", "KILL", "--", mosquitto, "-c", configurationFile]

        let (reading, writing) = try pipeClosedOnExec()
        defer { close(writing) }
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        do {
            let pid = try Self.spawn(setpriv, arguments, output: writing)
            return BrokerChild(pid: pid, output: reading, awaitedText: awaitedText, logger: logger)
        } catch {
            close(reading)
            throw error
        }
    }

    private func configurationText(for address: EmbeddedBroker.Address) -> String {
        """
        listener \(address.port) \(address.host)
        allow_anonymous true
        set_tcp_nodelay true
        persistence false
        max_packet_size \(Self.maxPacketSize)
        max_queued_messages \(Self.maxQueuedMessages)
        max_queued_bytes \(Self.maxQueuedBytes)
        log_dest stderr
        log_timestamp false
        log_type error
        log_type warning
        log_type notice
        connection_messages true

        """
    }

    private func write(_ text: String, to path: String) throws {
        do {
            try text.write(toFile: path, atomically: false, encoding: .utf8)
        } catch {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            throw EmbeddedBrokerError.system(call: "write \(path)", code: Int32(cause?.code ?? Int(EIO)))
        }
        if account != nil, chmod(path, 0o644) != 0 {
            throw EmbeddedBrokerError.system(call: "chmod \(path)", code: errno)
        }
    }
}

// MARK: - System

extension BrokerLauncher {
    /// Returns a path unchanged, or finds a name in PATH or in the directories of Debian's system programs.
    private static func find(_ program: String) throws -> String {
        if program.contains("/") {
            guard access(program, X_OK) == 0 else { throw EmbeddedBrokerError.executableNotFound(program) }
            return program
        }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        // Without the type, arrays of characters would be inferred.
        let folders: [String] = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"]
        guard let folder = folders.first(where: { access("\($0)/\(program)", X_OK) == 0 }) else {
            throw EmbeddedBrokerError.executableNotFound(program)
        }
        return "\(folder)/\(program)"
    }

    private static func account(_ name: String) -> (uid: uid_t, gid: gid_t)? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 4096)
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return (entry.pw_uid, entry.pw_gid)
    }

    func makeDirectory() throws -> Directory {
        let base = FileManager.default.temporaryDirectory.path
        // mkdtemp creates it with mode 0700.
        var template = Array("\(base)/coaty-gateway-broker-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw EmbeddedBrokerError.system(call: "mkdtemp in \(base)", code: errno)
        }
        let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let directory = Directory(path: path)
        if account != nil, chmod(path, 0o755) != 0 {
            let code = errno
            directory.remove()
            throw EmbeddedBrokerError.system(call: "chmod \(path)", code: code)
        }
        return directory
    }

    private typealias AddCloseFrom =
        @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32

    /// Starts the child with `/dev/null` as input, `output` as output and error output, no other descriptors, an
    /// environment without the gateway's secrets, and no blocked or ignored signals.
    private static func spawn(_ path: String, _ arguments: [String], output: Int32) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        // glibc 2.34 has the function, but declares it only for _GNU_SOURCE, which the module Glibc does not define. On
        // other systems, descriptors that were opened with O_CLOEXEC do not reach the child either.
        if let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") {
            _ = unsafeBitCast(symbol, to: AddCloseFrom.self)(&actions, STDERR_FILENO + 1)
        }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Pool threads block signals, and their children inherit that: SIGTERM would never arrive.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        // A separate process group: Ctrl-C in a terminal must reach only the gateway, which needs the broker for its
        // farewell.
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var argv = arguments.map { strdup($0) } + [nil]
        var environment = [strdup("LC_ALL=C"), nil]
        defer { for string in argv + environment { free(string) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, path, &actions, &attributes, &argv, &environment)
        guard code == 0 else { throw EmbeddedBrokerError.system(call: "starting \(path)", code: code) }
        return pid
    }
}
