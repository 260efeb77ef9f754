/// A router that associates sources with actors only by rules, which the option `rules` contains.
///
/// The rules for the pair's value type apply; if there are none, the rules without a value type. The first rule that
/// holds associates the pair.
open class RuleBasedIoRouter: IoRouter {
    /// The rules that were set last.
    private var setRules = IoAssociationRules([])
    /// The rules that pairs are decided by. They are updated after earlier changes are applied.
    private var indexedRules = IoAssociationRules([])

    /// The rules. If they are replaced, the affected pairs are decided again, after earlier changes.
    public var rules: [IoAssociationRule] {
        get { setRules.all }
        set { _ = replace(newValue) }
    }

    /// Reads the rules from the options.
    open override func onInit() {
        super.onInit()
        setRules = IoAssociationRules(options.extra["rules"] as? [IoAssociationRule] ?? [])
        indexedRules = setRules
    }

    /// Replaces all rules together, and decides again on the affected pairs.
    ///
    /// - Returns: the changes; empty if the communication manager stops meanwhile.
    @discardableResult
    public func replaceRules(_ rules: [IoAssociationRule]) async -> IoAssociationChanges {
        await replace(rules).value
    }

    private func replace(_ rules: [IoAssociationRule]) -> Task<IoAssociationChanges, Never> {
        let exchange = exchange(rules)
        return jobs.add { [self] in await evaluate(where: exchange()) ?? IoAssociationChanges() }
    }

    /// Replaces the rules, but not yet those that pairs are decided by.
    ///
    /// - Returns: a function that does this in a job, and returns the kinds of pairs to decide again.
    func exchange(_ rules: [IoAssociationRule]) -> () -> @Sendable (PointKind) -> Bool {
        let new = IoAssociationRules(rules)
        setRules = new
        return { [self] in
            let old = indexedRules
            indexedRules = new
            return { old.isTouched($0.valueType, by: new) }
        }
    }

    /// Returns the changes that another context or other rules would make, without making them.
    ///
    /// - Parameters:
    ///   - ioContext: the context, whose parent becomes the router; nil for the current one.
    ///   - rules: the rules; nil for the current ones.
    /// - Throws: `EncodingError` if the context is not valid; `CancellationError` if the task is cancelled;
    ///   ``RoutingExcess`` if the rules take too much work for some pairs.
    public func preview(
        ioContext: IoContext? = nil,
        rules: [IoAssociationRule]? = nil
    ) async throws -> IoAssociationChanges {
        guard var decision = decision(by: rules.map(IoAssociationRules.init) ?? indexedRules) else { return .init() }
        if let ioContext {
            ioContext.parentObjectId = container.identity.objectId
            decision.context = ioContext
            decision.contextJSON = try JSONDocument(encoding: ioContext).root
        }
        let verdicts = decision.verdicts
        return try await preview { table, _ in try await table.preview(verdicts) }
    }

    override var verdicts: IoRoutingTable.Verdicts {
        guard let decision else { return { _ in .constant(false) } }
        return decision.verdicts
    }

    override func touchedKinds(
        by context: JSONView?,
        from previous: JSONView?
    ) -> @Sendable (PointKind) -> Bool {
        guard let context, let previous else { return { _ in true } }
        return { [indexedRules] kind in
            indexedRules.candidates(for: kind.valueType).rules.contains { $0.isTouched(from: previous, to: context) }
        }
    }

    /// The current way to decide on pairs.
    var decision: IoRoutingDecision? { decision(by: indexedRules) }

    private func decision(by rules: IoAssociationRules) -> IoRoutingDecision? {
        guard let ioContext, let ioContextJSON else { return nil }
        return IoRoutingDecision(rules: rules, context: ioContext, contextJSON: ioContextJSON, router: self)
    }
}
