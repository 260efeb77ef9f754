import Access
import Cluster
import Edge
import Logging
import Network

extension GatewaySettings {
    /// Loads the files that the settings name, as a start does: the TLS certificate and its key, the secret of the
    /// cluster, and the keys or certificates that `access.jwt` names. Checks that the state directory and the audit log
    /// can be written; what it creates for that, it removes. Opens no connection.
    ///
    /// - Throws: the reason, with the path, why a file or the directory can't be used.
    public func checkFiles() throws {
        let logger = Logger(label: "coaty-gateway", factory: { _ in SwiftLogNoOpLogHandler() })
        if let files = transport.tls { _ = try CertificateStore(files, logger: logger) }
        _ = try clusterKeyFile.map(ClusterKey.init(file:))
        if let jwt = try AccessMode(self, generate: RandomSecret.token).jwt {
            _ = try KeyStore(jwt.keys, logger: logger) {}
        }
        try stateDirectory.map { try RoutingStore.check($0, configuration: routing) }
        try AuditLog.check(auditLog)
    }
}
