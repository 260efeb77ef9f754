import HTTPServer

extension HTTPRequest {
    /// Whether `Accept` contains `application/x-ndjson` and does not prefer `application/json` (RFC 9110, section
    /// 12.5.1).
    var prefersNDJSON: Bool {
        guard let accept = header("Accept") else { return false }
        var (ndjson, json) = (0.0, 0.0)
        for range in accept.lowercased().split(separator: ",") {
            let (name, weight) = Self.weighted(range)
            switch name {
            case "application/x-ndjson": ndjson = max(ndjson, weight)
            case "application/json": json = max(json, weight)
            default: continue
            }
        }
        return ndjson > 0 && ndjson >= json
    }

    /// Whether `Accept-Encoding` contains gzip and does not prefer the text as it is (RFC 9110, section 12.5.3).
    var prefersGzip: Bool {
        guard let accept = header("Accept-Encoding") else { return false }
        var (gzip, identity, any): (Double?, Double?, Double?)
        for coding in accept.lowercased().split(separator: ",") {
            let (name, weight) = Self.weighted(coding)
            switch name {
            case "gzip", "x-gzip": gzip = max(gzip ?? 0, weight)
            case "identity": identity = weight
            case "*": any = weight
            default: continue
            }
        }
        let weight = gzip ?? any ?? 0
        return weight > 0 && weight >= identity ?? 0
    }

    /// Returns the name and the weight of an element of such a list.
    private static func weighted(_ element: Substring) -> (name: String?, weight: Double) {
        let parts = element.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
        let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
        return (parts.first, weight)
    }
}
