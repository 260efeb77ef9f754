import CCurl
import Coaty
import Synchronization

/// One GET request for a JWK Set. Blocks its thread for at most ``timeout``.
struct KeyFetch: Sendable {
    /// The reason why there is no answer.
    struct Failure: Error {
        let reason: String
    }

    /// Maximum size of all header lines, in bytes.
    private static let maximumHead = 64 << 10
    /// libcurl requires one call of this before its first use.
    private static let isReady = ccurl_start() == CURLE_OK

    let url: String
    /// PEM file of the authorities that sign the server's certificate; nil for the system's authorities.
    let authorities: String?
    var timeout = Duration.seconds(10)

    /// - Parameter isCancelled: called about once a second.
    /// - Returns: the body, and the time for which the server allows clients to cache it.
    /// - Throws: ``Failure``; a redirect and any status other than 200 are failures.
    func run(isCancelled: @escaping () -> Bool) throws(Failure) -> (body: [UInt8], maximumAge: Duration?) {
        guard Self.isReady, let handle = curl_easy_init(), let location = KeyURL(url) else {
            throw Failure(reason: "libcurl can't be used")
        }
        defer { curl_easy_cleanup(handle) }
        let answer = Answer(isCancelled)
        // Valid as long as the callbacks are called: until `curl_easy_perform` returns.
        let context = Unmanaged.passUnretained(answer).toOpaque()
        let code = withExtendedLifetime(answer) {
            let prepared = ccurl_prepare(
                handle,
                url,
                location.scheme,
                Int(timeout / .milliseconds(1)),
                authorities,
                location.isLoopback ? 1 : 0,
                { data, _, count, context in
                    Answer.of(context)?.append(data, count, to: \.body, KeySet.maximumSize) ?? 0
                },
                { data, _, count, context in
                    Answer.of(context)?.append(data, count, to: \.head, KeyFetch.maximumHead) ?? 0
                },
                { context, _, _, _, _ in Answer.of(context)?.isCancelled() ?? true ? 1 : 0 },
                context
            )
            return prepared == CURLE_OK ? curl_easy_perform(handle) : prepared
        }
        guard code == CURLE_OK else {
            throw Failure(
                reason: answer.isTooLarge
                    ? "the answer is larger than \(KeySet.maximumSize) bytes"
                    : String(cString: curl_easy_strerror(code))
            )
        }
        let status = ccurl_status(handle)
        guard status == 200 else { throw Failure(reason: "the status is \(status)") }
        return (answer.body, Self.maximumAge(inHead: answer.head))
    }

    /// Returns the `max-age` of `Cache-Control` (RFC 9111); nil if there is none.
    static func maximumAge(inHead head: [UInt8]) -> Duration? {
        for line in String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "cache-control" else { continue }
            for directive in parts[1].lowercased().split(separator: ",") {
                let pair = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
                if pair.first == "max-age", let seconds = pair.last.flatMap({ Int($0) }) { return .seconds(seconds) }
            }
        }
        return nil
    }

    /// The server's response. Used by one thread.
    private final class Answer {
        var body: [UInt8] = []
        var head: [UInt8] = []
        var isTooLarge = false
        let isCancelled: () -> Bool

        init(_ isCancelled: @escaping () -> Bool) { self.isCancelled = isCancelled }

        static func of(_ context: UnsafeMutableRawPointer?) -> Answer? {
            context.map { Unmanaged<Answer>.fromOpaque($0).takeUnretainedValue() }
        }

        /// - Returns: the number of bytes, or 0 to end the request.
        func append(
            _ data: UnsafeMutablePointer<CChar>?,
            _ count: Int,
            to part: ReferenceWritableKeyPath<Answer, [UInt8]>,
            _ maximum: Int
        ) -> Int {
            guard self[keyPath: part].count + count <= maximum else {
                isTooLarge = true
                return 0
            }
            UnsafeBufferPointer(start: data, count: count).withMemoryRebound(to: UInt8.self) {
                self[keyPath: part].append(contentsOf: $0)
            }
            return count
        }
    }
}
