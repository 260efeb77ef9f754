/// The origin of a web page in the form that browsers send: `scheme://host[:port]`, without the scheme's default port
/// (RFC 6454, section 6.2).
package struct WebOrigin: Hashable, Sendable {
    package let text: String
    /// Host and port.
    private let authority: String
    /// The scheme's default port, with a colon.
    private let defaultPort: String

    /// Returns nil if the text is not an origin, such as the `null` of a sandboxed page.
    package init?(_ text: String) {
        let text = text.lowercased()
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, HostName(authority: parts[1]) != nil else { return nil }
        switch parts[0] {
        case "http": defaultPort = ":80"
        case "https": defaultPort = ":443"
        default: return nil
        }
        authority = parts[1].hasSuffix(defaultPort) ? String(parts[1].dropLast(defaultPort.count)) : String(parts[1])
        self.text = "\(parts[0])://\(authority)"
    }

    /// Returns whether a page of this origin has reached the server under its own host and port.
    package func isSame(asHost host: String) -> Bool {
        let host = host.lowercased()
        return host == authority || host == authority + defaultPort
    }
}
