package import Access
package import Base
import Coaty
package import Logging

extension IoNodeRegistry {
    /// Returns the functions that other gateways use.
    ///
    /// - Parameters:
    ///   - limits: the limits of registrations.
    ///   - accounts: the accounts of the owners.
    ///   - access: the policy in force.
    package func functions(
        _ limits: Limits,
        _ accounts: Accounts,
        _ access: AccessControl,
        _ logger: Logger
    ) -> PeerNodes.Registry {
        PeerNodes.Registry(
            register: { [weak self] id, record in
                do {
                    let request = try IoNodeRequest(Payload(Array(record.registration.utf8)), limits)
                    let owner = Principal(record.owner, address: "", under: access.policy)
                    let place = try accounts.account(of: owner).take(.ioNodes)
                    guard let node = try self?.node(request) else { return }
                    _ = try await self?.register(node, owner: owner, place: place, takeovers: record.takeovers)
                } catch {
                    logger.warning(
                        "an IO node of a gateway that has left could not be taken over",
                        metadata: ["node": "\(id)", "error": "\(error)"]
                    )
                }
            },
            renew: { [weak self] id, duration in
                self.flatMap { nodes in nodes.registered(id).flatMap { nodes.renew($0.node, for: duration) } }
            },
            withdraw: { [weak self] id in
                guard let self, let node = registered(id)?.node else { return false }
                return await withdraw(node)
            },
            advertise: { [weak self] id in
                do {
                    try self?.registered(id)?.node.advertise()
                } catch {
                    logger.debug("an IO node is not advertised again", metadata: ["error": "\(error)"])
                }
            }
        )
    }
}
