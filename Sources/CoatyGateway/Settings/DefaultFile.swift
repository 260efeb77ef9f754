extension GatewaySettings {
    /// A YAML file with every setting as a comment: its help, and the setting with its default.
    public static var defaultFile: String {
        let groups = groups.map { group in
            (["# \(group.title)"] + group.settings.map { entry($0) }).joined(separator: "\n\n")
        }
        let limits = limits.map { entry($0, indent: "  ") }
        return """
            # Settings of coaty-gateway. Each is also an environment variable (COATY_GATEWAY_HOST), and all but token are flags
            # (--host, --limit maximum-memory=…); both override this file. docs/configuration.md describes them. A setting without a default has no value here.

            \(groups.joined(separator: "\n\n"))

            # Limits (docs/limits.md).
            #limits:

            \(limits.joined(separator: "\n\n"))

            # IO contexts that the gateway routes (docs/configuration.md).
            #routing:
            #  contexts: []

            """
    }

    /// Returns a setting as a comment: its help, and its default.
    private static func entry(_ setting: Setting, indent: String = "") -> String {
        """
        \(comment(setting.help))
        #\(indent)\(setting.name): \(setting.defaultText.map(quoted) ?? "# \(setting.placeholder)")
        """
    }

    /// Returns a text as a YAML scalar: quoted if YAML could read it otherwise.
    private static func quoted(_ text: String) -> String {
        text.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._:\/-]*/) == nil ? "\"\(text)\"" : text
    }

    /// Returns a text as comment lines of at most 100 characters.
    private static func comment(_ text: String) -> String {
        var lines = [""]
        for word in text.split(whereSeparator: \.isWhitespace) {
            if let last = lines.last, last.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if let last = lines.last, last.count + word.count < 98 {
                lines[lines.count - 1] = last + " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines.map { "# " + $0 }.joined(separator: "\n")
    }
}
