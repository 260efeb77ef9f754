/// The network side of a router.
extension IoRouter {
    /// Observes all events that concern a context, until the communication manager stops.
    func observe(_ ioContext: IoContext, _ session: Session) {
        let (manager, inbox, others, answer) = (communicationManager, session.inbox, session.others, session.answer)
        let (name, contextId, ownId) = (ioContext.name, ioContext.objectId, manager.identityId)
        let updatePrefix = updatePrefix
        let (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        var observations = [
            manager.subscribe(.advertise(withCoreType: .IoNode)) { [weak self] in
                self?.offer($0.payload, isAdvertised: true, to: inbox)
            },
            manager.subscribe(.advertise(withCoreType: .Identity)) { if $0.sourceId != ownId { ask.yield() } },
            manager.subscribe(.deadvertise) { event in
                inbox.deadvertise(event.data)
                others.remove(event.data)
            },
            manager.subscribe(.advertise(withCoreType: .IoContext)) { event in
                let header = event.header
                guard header.parentObjectId != ownId,
                    header.objectId == contextId || header.json["name"]?.string.map(WireName.init) == WireName(name)
                else { return }
                others.note(event.sourceId)
            },
            manager.subscribe(.discover) { answer.resolve($0) },
            manager.subscribe(.update(withCoreType: .IoContext)) { [weak self] event in
                guard event.header.objectId == contextId,
                    event.correlationId?.string.hasPrefix(updatePrefix) != true, !inbox.update(event)
                else { return }
                self?.note("too many updates are queued")
            },
        ]
        if let associates = try? EventObservation<AssociateEvent>.associate(ioContextName: name) {
            let published = published
            observations.append(
                manager.subscribe(associates) { event in
                    others.note(event.sourceId)
                    published?.note(event.data)
                }
            )
        }
        for observation in observations { observation.disposed(by: disposeBag) }
        let periods = manager.onlinePeriods()
        Task { for await period in periods { inbox.online(period) } }.disposed(by: disposeBag)
        Task { for await _ in inbox.signals { await apply(inbox) } }.disposed(by: disposeBag)
        Task {
            for await _ in asks where self.session?.inbox === inbox {
                discover(inbox)
                try await Task.sleep(for: Self.discoverInterval)
            }
        }
        .disposed(by: disposeBag)
    }

    private nonisolated func offer(_ payload: Payload, isAdvertised: Bool, to inbox: IoRouterInbox) {
        if !inbox.offer(payload, isAdvertised: isAdvertised) { note("there are too many IO nodes") }
    }

    /// Applies all received changes, after all earlier jobs have ended.
    private func apply(_ inbox: IoRouterInbox) async {
        await jobs.add { [self] in
            let content = inbox.take()
            if let period = content.onlinePeriod, session?.inbox === inbox { await joined(period, inbox) }
            for (id, change) in content.nodes where session?.inbox === inbox { await take(id, change) }
            for event in content.updates where session?.inbox === inbox { await update(event) }
        }.value
    }

    private func joined(_ period: Int, _ inbox: IoRouterInbox) async {
        // Agents may have left unnoticed while this one was offline.
        unconfirmed = Set(table.nodes.map(\.id))
        session?.period = period
        session?.others.join(period)
        discover(inbox)
        // After a reconnect, the communication manager advertises the context again, unless it was changed meanwhile.
        await publishIoContext()
        await publisher?.resume(in: period)
        confirmation?.cancel()
        guard !unconfirmed.isEmpty else { return }
        confirmation = Deadline(after: Self.confirmationTime, on: confirmationClock) { [weak self] in
            Task { await self?.removeUnconfirmed(period, inbox) }
        }
    }

    private func removeUnconfirmed(_ period: Int, _ inbox: IoRouterInbox) async {
        // Nodes that arrived in time may still be queued behind an evaluation.
        await apply(inbox)
        // If the connection was lost meanwhile, nodes could not be advertised; the next period gives them time again.
        guard communicationManager.onlinePeriod == period, session?.inbox === inbox else { return }
        inbox.deadvertise(Array(unconfirmed))
    }

    /// Sends a Discover request for the IO nodes. Some agents advertise only one of their nodes when they join, so the
    /// router sends the request whenever an agent appears.
    private func discover(_ inbox: IoRouterInbox) {
        // The next online period sends the request.
        guard communicationManager.isConnected else { return }
        // Answers to earlier requests may still arrive.
        if requests.count == Self.maximumRequests { requests.removeFirst() }
        do {
            requests.append(
                try communicationManager.publish(DiscoverEvent.with(coreTypes: [.IoNode])) { [weak self] in
                    self?.offer($0.payload, isAdvertised: false, to: inbox)
                }
            )
        } catch {
            container.logger.warning("IO nodes could not be discovered", metadata: ["error": "\(error)"])
        }
    }

    private func take(_ id: CoatyUUID, _ change: IoRouterInbox.NodeChange) async {
        guard let payload = change.offer, let json = payload.json["object"] else {
            unconfirmed.remove(id)
            return await remove(id)
        }
        let isConfirmed = change.isFormer ? false : unconfirmed.remove(id) != nil
        // Another agent, or one that has returned, does not know the associations.
        if let known = table.node(id), change.wasGone || known.parentObjectId != json.parentObjectId {
            await remove(id)
        }
        // The agent may have missed changes while it, or this router, was offline. An agent that advertises an unchanged
        // node has joined again, although the end of its connection was not reported: its broker node may have failed.
        let known = table.node(id)
        let hasReturned = isConfirmed || known.map { change.isAdvertised && $0.json.bytes == json.bytes } ?? true
        let verdicts = verdicts
        do {
            try await self.change(returned: hasReturned ? id : nil) { table, _ in
                guard let node = try payload.object() as? IoNode else { return try await table.remove(id, verdicts) }
                return try await table.take(node, json: json, verdicts)
            }
        } catch is CancellationError {
            // The communication manager stopped.
        } catch {
            note("an IO node is not routed: \(DropLog.short("\(error)"))")
            // The earlier version of the node is out of date.
            await remove(id)
        }
    }

    private func remove(_ id: CoatyUUID) async {
        guard table.node(id) != nil else { return }
        let verdicts = verdicts
        do {
            try await change { table, _ in try await table.remove(id, verdicts) }
        } catch {
            // The communication manager stopped.
        }
    }
}
