/// Associates sources with actors by rules, which are the option `rules`, and by them alone.
///
/// Rules of the pair's value type count or, only where there are none, those without one. The first that holds associates.
open class RuleBasedIoRouter: IoRouter {
    private var indexedRules = IoAssociationRules([])

    /// The rules. New ones have the pairs decided anew that they can touch.
    public var rules: [IoAssociationRule] {
        get { indexedRules.all }
        set { replaceRules(newValue) }
    }

    /// Takes the rules from the options.
    open override func onInit() {
        super.onInit()
        indexedRules = IoAssociationRules(options.extra["rules"] as? [IoAssociationRule] ?? [])
    }

    /// Takes other rules, all at once, and decides anew on the pairs that they can touch.
    ///
    /// - Returns: what changed.
    @discardableResult
    public func replaceRules(_ rules: [IoAssociationRule]) -> IoAssociationChanges {
        let old = indexedRules
        indexedRules = IoAssociationRules(rules)
        return evaluate { old.isTouched($0.valueType, by: indexedRules) }
    }

    /// What another context or other rules would change, without doing it.
    ///
    /// - Parameters:
    ///   - ioContext: the context, of which the router becomes the parent; nil takes the one that is.
    ///   - rules: the rules; nil takes those that are.
    /// - Throws: `EncodingError` where the context is not valid.
    public func preview(ioContext: IoContext? = nil, rules: [IoAssociationRule]? = nil) throws -> IoAssociationChanges {
        guard var decision = decision(by: rules.map(IoAssociationRules.init) ?? indexedRules) else { return .init() }
        if let ioContext {
            ioContext.parentObjectId = container.identity.objectId
            decision.context = ioContext
            decision.contextJSON = try JSONDocument(PayloadCoder.encodeBytes(ioContext)).root
        }
        return table.preview { [decision] in decision.rule(for: $0, $1) != nil }
    }

    override func verdict(_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool {
        decision?.rule(for: source, actor) != nil
    }

    override func isTouched(_ valueType: WireName, by context: JSONView?, from previous: JSONView?) -> Bool {
        guard let context, let previous else { return true }
        return indexedRules.candidates(for: valueType).contains { $0.isTouched(from: previous, to: context) }
    }

    /// How pairs are decided now.
    var decision: IoRoutingDecision? { decision(by: indexedRules) }

    private func decision(by rules: IoAssociationRules) -> IoRoutingDecision? {
        guard let ioContext, let ioContextJSON else { return nil }
        return IoRoutingDecision(rules: rules, context: ioContext, contextJSON: ioContextJSON, router: self)
    }
}
