public import Base

extension GatewaySettings {
    private static let formerNames = [
        "outbox-bytes": "maximum-outbox-bytes", "outbox-publications": "maximum-outbox-publications",
        "resume-memory": "maximum-replay-memory",
    ]

    /// Returns the name of a limit that is or was given by a flag or key of this name; nil if there is none.
    public static func limit(formerly name: String) -> String? {
        formerNames[name] ?? limits.first { $0.name == name }?.name
    }

    /// Reads the values of `--limit`.
    ///
    /// - Parameter texts: such as `maximum-memory=1073741824`. Of several values of a limit, the last one counts.
    /// - Returns: the values by the names of limits.
    /// - Throws: ``InvalidConfiguration``
    public static func limitFlags(_ texts: [String]) throws(InvalidConfiguration) -> [String: String] {
        var values: [String: String] = [:]
        for text in texts {
            guard let equals = text.firstIndex(of: "=") else {
                throw InvalidConfiguration(description: "--limit \(text): must be name=value")
            }
            let name = String(text[..<equals])
            guard limits.contains(where: { $0.name == name }) else {
                let known = formerNames[name] ?? NearestName.of(name, among: limits.map(\.name))
                let hint = known.map { "; did you mean \($0)?" } ?? "; coaty-gateway help limits lists all"
                throw InvalidConfiguration(description: "--limit \(name): unknown limit\(hint)")
            }
            values[name] = String(text[text.index(after: equals)...])
        }
        return values
    }
}
