import HTTPServer

/// `GET /openapi.yaml`: the contract, as it stands in the repository.
struct ContractResource: Sendable {
    private static let response = HTTPResponse(
        status: 200,
        headers: [("Content-Type", "application/yaml")],
        body: PackageResources.openapi_yaml
    )

    func register(in router: inout Router) {
        router.on(.get, "/openapi.yaml") { _ in .response(Self.response) }
    }
}
