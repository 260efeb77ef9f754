package import Base
package import Coaty

/// The objects that a client requests, and their order.
package struct ObjectSelection: Sendable {
    let coreType: CoreType?
    let objectType: WireName?
    let filter: ClientCondition?
    let order: [OrderByProperty]
    let limit: Int
    let offset: Int

    package init(
        coreType: CoreType?,
        objectType: WireName?,
        filter: ClientCondition?,
        order: [OrderByProperty],
        limit: Int,
        offset: Int
    ) {
        self.coreType = coreType
        self.objectType = objectType
        self.filter = filter
        self.order = order
        self.limit = limit
        self.offset = offset
    }
}
