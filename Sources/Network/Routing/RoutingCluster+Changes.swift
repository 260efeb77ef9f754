import Base
import Cluster
import Coaty
import ProblemDetails

extension RoutingCluster {
    /// Makes a change of a hosted context at the gateway that speaks for it.
    ///
    /// - Throws: `Problem` if another gateway speaks and can't make the change; otherwise the errors of the change.
    func make(_ change: RoutingChange) async throws -> (text: [UInt8], changes: IoAssociationChanges) {
        guard let member = members[change.id] else {
            throw RoutingAdmin.Failure.notFound("This gateway does not route an IO context \(change.id).")
        }
        let deadline = ContinuousClock.now + .milliseconds(change.timeout)
        while true {
            guard manager.isOnline else { throw CommunicationError.offline }
            if member.election.claim.speaks {
                let outcome = try await makeHere(change, member)
                return (outcome.text, outcome.changes ?? IoAssociationChanges())
            }
            if let speaker = otherSpeaker(change.id), let outcome = try await ask(speaker, change, until: deadline) {
                return (outcome.text, outcome.changes ?? member.changes)
            }
            guard .now < deadline else { throw RoutingAdmin.Failure.noSpeaker(otherRouters(member.router)) }
            try await Task.sleep(for: Self.attemptInterval)
        }
    }

    /// - Returns: nil if the other gateway does not speak any more, and has changed nothing.
    private func ask(
        _ speaker: CoatyUUID,
        _ change: RoutingChange,
        until deadline: ContinuousClock.Instant
    ) async throws -> RoutingChange.Outcome? {
        let rest = max(deadline - .now, .zero) + Self.confirmationTime + .milliseconds(500)
        let answer: [UInt8]
        do {
            answer = try await peers.ask(speaker, Self.partName, change.json, timeout: rest)
        } catch is Peers.Failure {
            throw RoutingAdmin.Failure.noAnswer(Int(rest / .milliseconds(1)))
        }
        let view = try JSONDocument(answer).root
        if let problem = view["problem"].flatMap(Problem.init) { throw problem }
        return RoutingChange.Outcome(view)
    }

    /// Makes a change for a client of another gateway.
    func receive(_ change: RoutingChange) async -> [UInt8] {
        do {
            do {
                guard let member = members[change.id], member.election.claim.speaks, manager.isOnline else {
                    return Array(#"{"refused":true}"#.utf8)
                }
                return try await makeHere(change, member).json
            } catch {
                return try Problems.of(error).json
            }
        } catch {
            return []
        }
    }

    /// Makes a change here, and waits until the other gateways have stored it.
    private func makeHere(_ change: RoutingChange, _ member: Member) async throws -> RoutingChange.Outcome {
        guard let admin else { throw CommunicationError.offline }
        guard try admin.maximumSize(after: change, of: member.router) <= admin.maximumSharedSize else {
            throw RoutingAdmin.Failure.tooLargeForCluster(admin.maximumSharedSize)
        }
        let term = member.election.claim.version.term
        let (text, changes): ([UInt8], IoAssociationChanges)
        switch change.content {
        case .context(let content):
            let result = try await admin.update(
                member.router,
                change.id,
                content,
                ifMatch: change.ifMatch,
                mayDefer: false,
                holding: nil
            )
            (text, changes) = (Array(result.context.bytes), result.changes ?? .init())
        case .rules(let rules):
            let result = try await admin.replaceRulesHere(change.id, rules, ifMatch: change.ifMatch)
            (text, changes) = (result.text, result.changes)
        }
        let version = member.election.claim.version
        let missing = await unconfirmed(version, member)
        guard member.election.claim.speaks, version.term == term, member.election.claim.version.term == term else {
            throw RoutingAdmin.Failure.superseded
        }
        guard missing.isEmpty else { throw RoutingAdmin.Failure.notConfirmed(missing) }
        return RoutingChange.Outcome(text: text, changes: changes, version: version)
    }

    /// Returns the gateways that may speak next, but have not stored a version in time.
    private func unconfirmed(_ version: RoutingVersion, _ member: Member) async -> [CoatyUUID] {
        guard let text = try? PayloadCoder.encode(version) else { return [] }
        let question = Array(#"{"kept":{"id":"\#(member.id)","version":\#(text)}}"#.utf8)
        let hosts = hosts(member.id).filter(\.value.isReady).keys
        let peers = peers
        let missing = await withTaskGroup { group in
            for host in hosts {
                group.addTask {
                    let answer = try? await peers.ask(host, Self.partName, question, timeout: Self.confirmationTime)
                    return answer == nil ? host : nil
                }
            }
            var missing: [CoatyUUID] = []
            for await host in group { if let host { missing.append(host) } }
            return missing
        }
        let live = peers.live
        return missing.filter(live.contains).sorted { $0.string < $1.string }
    }
}

extension RoutingAdmin {
    /// Returns an upper bound of the size of a context and its rules after a change, in bytes.
    fileprivate func maximumSize(after change: RoutingChange, of router: HostedRouter) throws -> Int {
        switch change.content {
        case .context(let content): try maximumSize(of: change.id, after: content) + Self.json(router.rules).count
        case .rules(let rules): try (router.ioContextJSON?.bytes.count ?? 0) + Self.json(rules).count
        }
    }
}
