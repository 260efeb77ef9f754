package import Cluster
package import Coaty
import Synchronization

/// The messages between the gateways of a cluster about the contexts that they route.
extension RoutingCluster {
    /// Sends the state of a context.
    func publish(_ member: Member) {
        guard let context = member.router.ioContextJSON, let rules = try? RoutingAdmin.json(member.router.rules),
            let version = try? PayloadCoder.encode(member.election.claim.version)
        else { return }
        let head = Array(#"{"state":{"id":"\#(member.id)","version":\#(version),"context":"#.utf8)
        let text = head + context.bytes + Array(#","rules":"#.utf8) + rules + Array("}}".utf8)
        outgoing.withLock { outgoing in
            outgoing.states[member.id] = text
            outgoing.changed.insert(member.id)
        }
        peers.noteChange(of: Self.partName)
    }

    /// Sends the claims, if they have changed.
    func announce(_ member: Member, speaker others: [CoatyUUID: RouterElection.Claim]) {
        let claims = order.compactMap { id in
            members[id].map { ClusterInbox.NamedClaim(id: id, claim: $0.election.claim) }
        }
        let claim = member.election.claim
        let speaker = claim.speaks ? peers.id : Self.speaker(others)
        let isChanged = outgoing.withLock { outgoing in
            defer { outgoing.claims = claims }
            outgoing.speakers[member.id] = speaker
            if !claim.speaks { outgoing.states[member.id] = nil }
            return outgoing.claims.map(\.claim) != claims.map(\.claim)
        }
        if isChanged { peers.noteChange(of: Self.partName) }
    }

    func answer(_ member: Member) {
        guard let stored = member.stored else { return }
        member.waiting.removeAll { source, answer in
            guard source.speaker == stored.speaker, source.version <= stored.version else { return false }
            answer(Array(#"{"kept":true}"#.utf8))
            return true
        }
    }
}

extension RoutingCluster: PeerPart {
    package nonisolated var name: String { Self.partName }

    package nonisolated func takeWhole() -> [[UInt8]] {
        outgoing.withLock { outgoing in
            outgoing.changed = []
            return [Self.json(outgoing.claims)] + outgoing.states.values
        }
    }

    package nonisolated func takeChanges() -> [[UInt8]] {
        outgoing.withLock { outgoing in
            defer { outgoing.changed = [] }
            // States first, so that no gateway sees a claim without its state.
            return outgoing.changed.compactMap { outgoing.states[$0] } + [Self.json(outgoing.claims)]
        }
    }

    private nonisolated static func json(_ claims: [ClusterInbox.NamedClaim]) -> [UInt8] {
        // Encoding ids and numbers never fails.
        Array(#"{"claims":\#((try? PayloadCoder.encode(claims)) ?? "[]")}"#.utf8)
    }

    package nonisolated func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID) {
        inbox.withLock { $0.receive(piece, replacesAll: replacesAll, from: peer) }
        signalAll()
    }

    package nonisolated func handle(_ change: PeerTable.Change) {
        let known = peers.known
        inbox.withLock { $0.keep(known) }
        signalAll()
    }

    package nonisolated func receive(
        question: JSONView,
        from peer: CoatyUUID,
        answer: @escaping @Sendable ([UInt8]) -> Void
    ) {
        Task { @ControllerActor in
            if let kept = question["kept"] { await receive(kept: kept, from: peer, answer) }
            if let view = question["change"], let change = RoutingChange(view) { answer(await receive(change)) }
        }
    }

    /// Answers whether a version is stored, as soon as it is.
    private func receive(
        kept view: JSONView,
        from peer: CoatyUUID,
        _ answer: @escaping @Sendable ([UInt8]) -> Void
    ) async {
        guard let member = view["id"]?.string.flatMap({ members[CoatyUUID(wire: $0)] }),
            let version = view["version"].flatMap({ try? PayloadCoder.decode(RoutingVersion.self, from: $0) }),
            member.waiting.count < Self.maximumWaiting
        else { return }
        member.waiting.removeAll { $0.source.version.term < version.term }
        member.waiting.append((Source(speaker: peer, version: version), answer))
        self.answer(member)
    }
}
