import HTTPServer

extension HTTPRequest {
    /// Whether `Accept` contains `application/x-ndjson` and does not prefer `application/json` (RFC 9110, section
    /// 12.5.1).
    var prefersNDJSON: Bool {
        guard let accept = header("Accept") else { return false }
        var (ndjson, json) = (0.0, 0.0)
        for range in accept.lowercased().split(separator: ",") {
            let parts = range.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            switch parts.first {
            case "application/x-ndjson": ndjson = max(ndjson, weight)
            case "application/json": json = max(json, weight)
            default: continue
            }
        }
        return ndjson > 0 && ndjson >= json
    }
}
