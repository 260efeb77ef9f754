/// Updates of the context: by Update events of other agents, and by calls.
extension IoRouter {
    /// The outcome of an update by a call.
    package struct Updated: Sendable {
        /// The context, with the router as its parent.
        package let context: JSONView
        /// The changed associations.
        package let changes: IoAssociationChanges
        /// Whether other agents learn of it only when the router joins the next online period.
        package let isDeferred: Bool
    }

    /// Updates the context by a call, which needs no broker.
    ///
    /// Other agents observe what they observe when an agent requests the update: an Update and an Advertise event, the
    /// changed associations and a Complete event. While the agent is not online, these are deferred; of several updates,
    /// the last one is published.
    ///
    /// - Parameters:
    ///   - mayDefer: whether the update is made while the agent is not online.
    ///   - holding: released when the Update event is written or given up.
    ///   - makeEvent: returns the Update event for the current context, when all earlier changes are made.
    /// - Returns: nil if the router is silent, or the communication manager is stopped or stops meanwhile.
    /// - Throws: the errors of `makeEvent`; `DecodingError` or ``PayloadError`` if its object is not the context;
    ///   ``CommunicationError``. In these cases nothing has changed.
    package func updateIoContext(
        mayDefer: Bool,
        holding: (any PublicationHolder)?,
        _ makeEvent: @escaping @ControllerActor (JSONView?) throws -> UpdateEvent
    ) async throws -> Updated? {
        let result: Result<Updated?, any Error> = await jobs.add { [self] in
            do {
                return .success(try await update(makeEvent, mayDefer: mayDefer, holding: holding))
            } catch {
                return .failure(error)
            }
        }.value
        return try result.get()
    }

    private func update(
        _ makeEvent: (JSONView?) throws -> UpdateEvent,
        mayDefer: Bool,
        holding: (any PublicationHolder)?
    ) async throws -> Updated? {
        let hasRoom = await publisher?.hasRoomForAction
        // Without a suspension from here until the events are published.
        guard session != nil, let hasRoom, !isSilent else { return nil }
        let event = try makeEvent(ioContextJSON)
        guard let (updated, previous) = try contexts(event) else {
            throw PayloadError.invalid(pointer: "", reason: "is not this IO context")
        }
        var published: UpdateEvent?
        if publishesNow {
            guard hasRoom else {
                let queued = communicationManager.queued
                throw CommunicationError.queueFull(publications: queued.publications, bytes: queued.bytes)
            }
            published = try publish(event, updated, holding: holding)
        } else if !mayDefer {
            throw CommunicationError.offline
        }
        let changes = try await make(event, updated, from: previous, unpublished: published == nil ? .update : nil)
        guard let changes, let json = ioContextJSON else { return nil }
        if let published { await complete(published, with: updated) }
        return Updated(context: json, changes: changes, isDeferred: published == nil)
    }

    /// Makes an update that another agent requests. Call it in a job.
    func update(_ event: UpdateEvent) async {
        guard !isSilent else { return }
        do {
            guard let (updated, previous) = try contexts(event) else {
                return note("an update would make another IO context")
            }
            guard shouldUpdateIoContext(by: event) else { return }
            guard let publisher, await publisher.hasRoomForAction else { return note("too many updates are queued") }
            var unpublished: Session.Unpublished?
            if publishesNow {
                // First, because a full outbox refuses it: in that case nothing has changed.
                try communicationManager.publishAdvertise(.with(object: updated))
                session?.unpublished = nil
            } else {
                unpublished = session?.unpublished ?? .context
            }
            // Without changes, the communication manager stopped.
            if try await make(event, updated, from: previous, unpublished: unpublished) != nil {
                await complete(event, with: updated)
            }
        } catch {
            container.logger.warning("an update was not made", metadata: ["error": "\(error)"])
        }
    }

    /// Publishes what other agents do not yet know of the context: the context, and of deferred updates the last one. If
    /// the outbox has no room, it is repeated later. Call it in a job.
    func publishIoContext() async {
        guard let ioContext, !isSilent, publishesNow, let unpublished = session?.unpublished else { return }
        do {
            switch unpublished {
            case .context:
                try communicationManager.publishAdvertise(.with(object: ioContext))
                session?.unpublished = nil
            case .update:
                let event = try UpdateEvent.with(object: ioContext)
                let update = try publish(event, ioContext, holding: nil)
                await complete(update, with: ioContext)
            }
        } catch CommunicationError.queueFull(let publications, let bytes) where publications > 0 {
            session?.room = communicationManager.whenRoom(
                below: max(publications / 2, 1),
                bytes: max(bytes / 2, 1)
            ) { [weak self] in
                Task { @ControllerActor in
                    guard let self else { return }
                    await self.jobs.add { await self.publishIoContext() }.value
                }
            }
        } catch {
            container.logger.error("an IO context could not be advertised", metadata: ["error": "\(error)"])
        }
    }

    /// Returns the updated context, with the router as its parent, and the present one; nil if the event would make another context.
    private func contexts(_ event: UpdateEvent) throws -> (updated: IoContext, previous: IoContext)? {
        // Nodes and routers identify a context by its name. With another name, it would be another context.
        guard let updated = try event.data.object as? IoContext, let previous = ioContext,
            WireName(updated.name) == WireName(previous.name)
        else { return nil }
        updated.parentObjectId = container.identity.objectId
        return (updated, previous)
    }

    /// Adopts an updated context, and decides again.
    ///
    /// - Parameter unpublished: what other agents do not yet know of the context; nil if the update is published.
    /// - Returns: nil if the communication manager stops meanwhile.
    private func make(
        _ event: UpdateEvent,
        _ updated: IoContext,
        from previous: IoContext,
        unpublished: Session.Unpublished?
    ) async throws -> IoAssociationChanges? {
        let previousJSON = ioContextJSON
        try adopt(updated)
        if let unpublished {
            // Otherwise, the agent would advertise an earlier version when it is online again.
            communicationManager.forget(replaced: updated.objectId)
            session?.unpublished = unpublished
        }
        guard let changes = await evaluate(where: touchedKinds(by: ioContextJSON, from: previousJSON)) else {
            return nil
        }
        onIoContextUpdated(by: event, from: previous, changes: changes)
        return changes
    }

    /// Publishes an update that this router makes itself, and the updated context.
    ///
    /// - Returns: the event to complete.
    private func publish(
        _ event: UpdateEvent,
        _ updated: IoContext,
        holding: (any PublicationHolder)?
    ) throws -> UpdateEvent {
        let published = try communicationManager.publish(
            event,
            as: CoatyUUID(wire: updatePrefix + CoatyUUID().string.dropFirst(updatePrefix.count)),
            advertising: .with(object: updated),
            holding: holding
        )
        session?.unpublished = nil
        return published
    }

    /// Completes an update when the associations that it has changed are published.
    private func complete(_ event: UpdateEvent, with context: IoContext) async {
        do {
            let complete = try CompleteEvent.with(object: context)
            await publisher?.append { [logger = container.logger] in
                do {
                    try event.complete(complete)
                } catch {
                    logger.warning("an update could not be completed", metadata: ["error": "\(error)"])
                }
            }
        } catch {
            container.logger.warning("an update could not be completed", metadata: ["error": "\(error)"])
        }
    }
}
