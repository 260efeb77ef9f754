/// The version of the gateway.
package enum GatewayVersion {
    /// As in openapi.yaml.
    package static let text = "0.1.0"
}
