import CEmbedded
import HTTPServer

/// `GET /`, `/client.js`, `/client.d.ts` and `/console/{file}`: the unchanged files of the folder Console.
struct ConsoleResource: Sendable {
    /// A file with its prepared responses.
    struct File: Sendable {
        let path: String
        private let tag: EntityTag
        private let whole: HTTPResponse
        private let unchanged: HTTPResponse

        init(_ name: String, _ mediaType: String, _ text: [UInt8]) {
            let isPublic = ConsoleResource.publicFiles.contains(name)
            path = name == "index.html" ? "/" : isPublic ? "/\(name)" : "/console/\(name)"
            tag = EntityTag(text)
            var headers = [
                (name: "Content-Security-Policy", value: ConsoleResource.policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", isPublic ? "cross-origin" : "same-origin"),
                ("Cache-Control", "no-cache"),
                ("ETag", tag.text),
            ]
            // Responses to pages of allowed origins contain the origin.
            headers.append(isPublic ? ("Access-Control-Allow-Origin", "*") : ("Vary", "Origin"))
            unchanged = HTTPResponse(status: 304, headers: headers)
            whole = HTTPResponse(status: 200, headers: [("Content-Type", mediaType)] + headers, body: text)
        }

        func response(to request: borrowing HTTPRequest) -> HTTPResponse {
            // A malformed condition is ignored: sending the whole file is always correct.
            let condition = request.header("If-None-Match").flatMap { try? IfMatch($0) }
            return condition?.holdsWeakly(for: tag) ?? false ? unchanged : whole
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
            router.onPublic(.get, file.path) { request in .response(file.response(to: request)) }
        }
        router.onPublic(.get, "/console/{file}") { [files] request in
            let file = files[request.parameters["file"] ?? ""]
            guard let file, file.path.hasPrefix("/console/") else {
                return .response(Problems.notFound(detail: "The console has no such file.").response())
            }
            return .response(file.response(to: request))
        }
    }
}
