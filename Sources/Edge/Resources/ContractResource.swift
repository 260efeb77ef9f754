import CEmbedded
import HTTPServer

/// `GET /openapi.yaml`: the API contract, unchanged from the repository.
struct ContractResource: Sendable {
    static let text = Array(String(cString: embedded_contract()).utf8)

    private static let file = StaticFile(text, mediaType: "application/yaml", headers: [("Vary", "Origin")])

    func register(in router: inout GatewayRouter) {
        router.onPublic(.get, "/openapi.yaml") { request in .response(Self.file.response(to: request)) }
    }
}
