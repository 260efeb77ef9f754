/// Routers of several agents for the same context, of which one speaks. The owners of the routers decide which.
///
/// A silent router knows the nodes, decides and reports changes, so that it can take over at any time. It publishes
/// nothing, and answers no requests for its context.
extension RuleBasedIoRouter {
    /// Makes the router silent. Call it before the communication manager starts.
    package func startSilent() { follow() }

    /// Ends the silence: advertises the context, and publishes all associations.
    package func speak() async {
        await jobs.add { [self] in
            guard session != nil, let ioContext else { return }
            isSilent = false
            let previous = ioContextJSON
            do {
                try adopt(ioContext)
            } catch {
                container.logger.error("an IO context is not valid", metadata: ["error": "\(error)"])
            }
            session?.unpublished = .context
            await publishIoContext()
            // The context has another parent, and rules can refer to it.
            _ = await evaluate(where: touchedKinds(by: ioContextJSON, from: previous))
            await publishAll()
        }.value
    }

    /// Publishes all associations again.
    package func publishAgain() async {
        await jobs.add { [self] in
            if session != nil, !isSilent { await publishAll() }
        }.value
    }

    /// Begins the silence; associations stay.
    ///
    /// - Parameter publishing: whether what is queued is published first.
    package func fallSilent(publishing: Bool) async {
        await jobs.add { [self] in
            guard !isSilent else { return }
            if publishing { await publisher?.finish() }
            isSilent = true
            session?.answer.event = nil
            session?.unpublished = .context
            if let ioContext { communicationManager.forget(replaced: ioContext.objectId) }
            await publisher?.discard()
        }.value
    }

    /// Adopts the context and the rules of another agent's router, and decides again on the affected pairs.
    ///
    /// - Parameter json: the published JSON of the context.
    /// - Returns: the changes; nil if the communication manager stops meanwhile.
    package func follow(
        _ context: sending IoContext,
        _ json: JSONView,
        _ rules: [IoAssociationRule]
    ) async -> IoAssociationChanges? {
        let exchange = exchange(rules)
        return await jobs.add { [self] in
            let previous = ioContextJSON
            adopt(context, as: json)
            let isTouchedByRules = exchange()
            let isTouchedByContext = touchedKinds(by: json, from: previous)
            return await evaluate { isTouchedByRules($0) || isTouchedByContext($0) }
        }.value
    }
}
