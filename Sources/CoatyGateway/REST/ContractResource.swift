import CEmbedded
import HTTPServer

/// `GET /openapi.yaml`: the API contract, unchanged from the repository.
struct ContractResource: Sendable {
    static let text = Array(String(cString: embedded_contract()).utf8)

    private static let response = HTTPResponse(
        status: 200,
        headers: [("Content-Type", "application/yaml"), ("Vary", "Origin")],
        body: text
    )

    func register(in router: inout GatewayRouter) {
        router.onPublic(.get, "/openapi.yaml") { _ in .response(Self.response) }
    }
}
