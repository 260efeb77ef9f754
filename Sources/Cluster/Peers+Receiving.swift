import Coaty

/// What messages of other gateways do.
extension Peers {
    func receive(_ event: ChannelEvent) {
        guard let message = PeerMessage(event, seal, namespace: manager.namespace) else {
            unreadable.wrappingAdd(1, ordering: .relaxed)
            return
        }
        queue.async { self.receive(message) }
    }

    func receive(_ event: DeadvertiseEvent) {
        let known = known
        let ids = known.isEmpty ? [] : event.data.objectIds.filter(known.contains)
        let isOwn = event.data.objectIds.contains(id)
        guard !ids.isEmpty || isOwn else { return }
        queue.async { [self] in
            let now = now
            for id in ids { state.withLock { $0.table.suspect(id, at: now) } }
            // The will of an earlier connection, or another agent, has deadvertised this gateway. The others expect a
            // sign of life now.
            if isOwn { sendState() }
        }
    }

    private func receive(_ message: PeerMessage) {
        let (head, now) = (message.head, now)
        let (reception, isNewLoop) = state.withLock { state in
            let hadLoop = state.table.hasLoop(at: now)
            let reception = state.table.receive(head, at: now)
            if reception.needsReply { state.isDue = true }
            return (reception, !hadLoop && state.table.hasLoop(at: now))
        }
        if isNewLoop {
            logger.warning("the broker delivers messages of this gateway twice: look for a loop of bridges")
        }
        handle(reception.changes)
        guard reception.isAccepted, head.to == nil || head.to == session else { return }
        switch head.content {
        case .state: compare(head, at: now)
        case .whole, .change:
            apply(message)
            compare(head, at: now)
        case .wanted:
            if let part = head.part { state.withLock { $0.parts[part]?.isWanted = true } }
            advance()
        case .question: answer(message)
        case .answer:
            if let number = head.question { end(number, message.body) }
        }
    }

    private func apply(_ message: PeerMessage) {
        let head = message.head
        guard let name = head.part, let revision = head.revisions[name],
            let document = try? JSONDocument(message.body)
        else { return }
        let part = state.withLock { state -> (any PeerPart)? in
            guard let part = state.parts[name] else { return nil }
            let copy = part.copies[head.session] ?? Copy()
            guard head.content == .whole || copy.revision > 0 && copy.revision + 1 == revision else { return nil }
            state.parts[name]?.copies[head.session] = Copy(revision: revision, latest: revision)
            return part.part
        }
        part?.receive(document.root, replacesAll: head.content == .whole, from: head.from)
    }

    /// Records the revisions of another gateway's parts, and requests those of which a message was missed.
    private func compare(_ head: PeerMessage.Head, at now: Duration) {
        state.withLock { state in
            for name in state.parts.keys {
                guard let revision = head.revisions[name] else { continue }
                state.parts[name]?.copies[head.session, default: Copy()].latest = revision
            }
        }
        requestMissing(of: [head.session], at: now)
    }

    func requestMissing(of sessions: [PeerMessage.Session], at now: Duration) {
        let wanted = state.withLock { state in
            var wanted: [(part: String, session: PeerMessage.Session)] = []
            for name in state.parts.keys {
                for session in sessions {
                    guard let copy = state.parts[name]?.copies[session], !copy.isComplete,
                        copy.lastWanted.map({ now - $0 > Self.wholeInterval }) ?? true
                    else { continue }
                    state.parts[name]?.copies[session]?.lastWanted = now
                    wanted.append((name, session))
                }
            }
            return wanted
        }
        for (part, session) in wanted { send(.wanted, part, [], to: session) }
    }

    private func answer(_ message: PeerMessage) {
        let head = message.head
        guard let name = head.part, let part = state.withLock({ $0.parts[name]?.part }),
            let document = try? JSONDocument(message.body)
        else { return }
        part.receive(question: document.root, from: head.from) { [weak self] answer in
            guard let self else { return }
            queue.async { self.send(.answer, name, answer, to: head.session, head.question) }
        }
    }
}
