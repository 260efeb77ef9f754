import Glibc
import Measurement

/// The standard process metrics of Prometheus client libraries, under the same names.
struct ProcessMetrics {
    static func write(to text: inout MetricsText) {
        guard let stat = read("/proc/self/stat"), let name = stat.lastIndex(of: ")") else { return }
        // From the third field on; the second is the name, which may contain spaces.
        let fields = stat[stat.index(after: name)...].split(separator: " ")
        func number(_ field: Int) -> Double? { fields.count > field - 3 ? Double(fields[field - 3]) : nil }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        if let user = number(14), let system = number(15) {
            text.counter("process_cpu_seconds_total", "Processor time.", [([], (user + system) / ticks)])
        }
        if let threads = number(20) { text.gauge("process_threads", "Threads.", [([], threads)]) }
        if let start = number(22) {
            text.gauge(
                "process_start_time_seconds",
                "When the process was started, in seconds since 1970.",
                [([], (boot + start / ticks).rounded())]
            )
        }
        if let bytes = number(23) { text.gauge("process_virtual_memory_bytes", "Virtual memory.", [([], bytes)]) }
        if let pages = number(24) {
            let bytes = pages * Double(sysconf(Int32(_SC_PAGESIZE)))
            text.gauge("process_resident_memory_bytes", "Resident memory.", [([], bytes)])
        }
        if let open = openDescriptors() { text.gauge("process_open_fds", "Open file descriptors.", open) }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            text.gauge("process_max_fds", "Maximum number of open file descriptors.", Int(clamping: limit.rlim_cur))
        }
    }

    /// When the machine was started, in seconds since 1970. Not from /proc/stat, which the unit file hides. Determined
    /// only once, so that a later change of the clock does not look like a restart.
    private static let boot: Double = {
        var time = timespec()
        func now(_ clock: clockid_t) -> Double {
            clock_gettime(clock, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        return now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME)
    }()

    private static func openDescriptors() -> Int? {
        guard let directory = opendir("/proc/self/fd") else { return nil }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Subtracts the descriptor of this directory, "." and "..".
        return count - 3
    }

    private static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 20 {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer.prefix(count)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
