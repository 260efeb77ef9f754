import Base
import CEmbedded
import HTTPServer

/// `GET /`, `/client.js`, `/client.d.ts` and `/console/{file}`: the unchanged files of the folder Console.
struct ConsoleResource: Sendable {
    /// A file and the path that it is served at.
    struct File: Sendable {
        let path: String
        let content: StaticFile

        init(_ name: String, _ mediaType: String, _ text: [UInt8]) {
            let isPublic = ConsoleResource.publicFiles.contains(name)
            path = name == "index.html" ? "/" : isPublic ? "/\(name)" : "/console/\(name)"
            var headers = [
                (name: "Content-Security-Policy", value: ConsoleResource.policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", isPublic ? "cross-origin" : "same-origin"),
            ]
            // Responses to pages of allowed origins contain the origin.
            headers.append(isPublic ? ("Access-Control-Allow-Origin", "*") : ("Vary", "Origin"))
            content = StaticFile(text, mediaType: mediaType, headers: headers)
        }
    }

    /// Files by name.
    let files: [String: File]

    /// The content security policy: the page loads only from the gateway and creates no markup or code from text.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
        """

    /// Files that pages of any origin may import.
    private static let publicFiles: Set = ["client.js", "client.d.ts"]

    /// Paths of the public files.
    var publicPaths: Set<String> { Set(Self.publicFiles.compactMap { files[$0]?.path }) }

    /// Media types by file name extension.
    private static let mediaTypes = [
        ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml",
        ".ts": "text/plain",
    ]

    init() {
        var files: [String: File] = [:]
        var index: Int32 = 0
        while let file = embedded_console_file(index)?.pointee {
            index += 1
            let name = String(cString: file.name)
            guard let type = Self.mediaTypes.first(where: { name.hasSuffix($0.key) })?.value else { continue }
            files[name] = File(name, "\(type); charset=utf-8", Array(String(cString: file.text).utf8))
        }
        self.files = files
    }

    func register(in router: inout GatewayRouter) {
        for file in files.values where !file.path.hasPrefix("/console/") {
            router.onPublic(.get, file.path) { request in .response(file.content.response(to: request)) }
        }
        router.onPublic(.get, "/console/{file}") { [files] request in
            let file = files[request.parameters["file"] ?? ""]
            guard let file, file.path.hasPrefix("/console/") else {
                return .response(Problems.notFound(detail: "The console has no such file.").response())
            }
            return .response(file.content.response(to: request))
        }
    }
}
