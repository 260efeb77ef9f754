import Base
package import Coaty

/// Records about things of a gateway by their ids, and copies of those of the other gateways: the state of a
/// ``PeerPart``.
package struct PeerRecords<Record: Codable & Sendable & Equatable>: Sendable {
    /// Maximum number of records of one gateway.
    static var maximumRecords: Int { 100_000 }
    /// Maximum number of records in a message, and the size at which it has enough, in bytes.
    private static var maximumPiece: (records: Int, bytes: Int) { (200, 32 << 10) }

    package private(set) var own: [CoatyUUID: Record] = [:]
    /// By the id of the gateway.
    package var others: [CoatyUUID: [CoatyUUID: Record]] = [:]
    /// The gateways that have left, and whose things nobody has taken over yet.
    package private(set) var orphaned: Set<CoatyUUID> = []
    private var changed: Set<CoatyUUID> = []

    package init() {}

    /// Sets or removes a record.
    ///
    /// - Returns: whether it is the first change since the last message.
    package mutating func set(_ id: CoatyUUID, _ record: Record?) -> Bool {
        guard own[id] != record else { return false }
        own[id] = record
        defer { changed.insert(id) }
        return changed.isEmpty
    }

    package mutating func takeWhole() -> [[UInt8]] {
        changed = []
        let pieces = Self.pieces(own.map { ($0.key, $0.value) })
        return pieces.isEmpty ? [Array("{}".utf8)] : pieces
    }

    package mutating func takeChanges() -> [[UInt8]] {
        defer { changed = [] }
        return Self.pieces(changed.map { ($0, own[$0]) })
    }

    /// Returns JSON objects whose members are records, or null for those that were removed.
    private static func pieces(_ records: [(CoatyUUID, Record?)]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        var count = 0
        for (id, record) in records {
            // Not expected to fail: the records are made of strings and numbers.
            guard let text = try? record.map({ try PayloadCoder.encodeBytes($0) }) ?? Array("null".utf8) else {
                continue
            }
            piece.append(UInt8(ascii: count == 0 ? "{" : ","))
            JSONText.append(id.string, to: &piece)
            piece.append(UInt8(ascii: ":"))
            piece += text
            count += 1
            if count == maximumPiece.records || piece.count >= maximumPiece.bytes {
                pieces.append(piece + "}".utf8)
                (piece, count) = ([], 0)
            }
        }
        if count > 0 { pieces.append(piece + "}".utf8) }
        return pieces
    }

    /// Applies a piece of another gateway.
    package mutating func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID) {
        guard let change = try? PayloadCoder.decode([String: Record?].self, from: piece) else { return }
        var records = others.removeValue(forKey: peer) ?? [:]
        if replacesAll { records = [:] }
        for (id, record) in change {
            let id = CoatyUUID(wire: id)
            guard let record, records.count < Self.maximumRecords || records[id] != nil else {
                records[id] = nil
                continue
            }
            records[id] = record
        }
        others[peer] = records
        for gateway in orphaned where gateway != peer { removeTaken(from: gateway) }
    }

    /// Handles that another gateway has joined, stops, is missing or has left.
    ///
    /// - Parameter known: the gateways that have joined, even if they have left since; the others are forgotten.
    /// - Returns: whether the things of a gateway may be taken over now.
    package mutating func handle(_ change: PeerTable.Change, known: Set<CoatyUUID>) -> Bool {
        switch change {
        case .joined(let id): orphaned.remove(id)
        case .stopping, .missing: break
        case .left(let id):
            others = others.filter { known.contains($0.key) }
            removeTaken(from: id)
            orphaned = orphaned.intersection(known)
            if others[id]?.isEmpty == false { orphaned.insert(id) }
            return true
        }
        return false
    }

    /// Forgets that there is something to take over from the gateways without records.
    package mutating func removeEmptyOrphans() { orphaned = orphaned.filter { others[$0]?.isEmpty == false } }

    /// Removes the records of a gateway that has left about what the remaining gateways have, because they have taken it
    /// over.
    private mutating func removeTaken(from gateway: CoatyUUID) {
        guard let records = others[gateway] else { return }
        others[gateway] = records.filter { id, _ in
            own[id] == nil && !others.contains { $0.key != gateway && $0.value[id] != nil }
        }
    }
}

/// A record about a thing that another gateway can take over.
package protocol TakenOver: Codable, Equatable, Sendable {
    /// How often it was taken over. If two gateways have it, the one with the higher number keeps it.
    var takeovers: Int { get }
}

extension PeerRecords where Record: TakenOver {
    /// Returns the things of this gateway that another one has taken over.
    ///
    /// - Parameter id: the id of this gateway.
    package func taken(by peer: CoatyUUID, from id: CoatyUUID) -> [CoatyUUID] {
        (others[peer] ?? [:]).keys.filter { isTaken($0, by: peer, from: id) }
    }

    /// Returns whether another gateway has taken over a thing of this one.
    package func isTaken(_ thing: CoatyUUID, by peer: CoatyUUID, from id: CoatyUUID) -> Bool {
        guard let own = own[thing], let record = others[peer]?[thing] else { return false }
        // If two gateways have taken it over at the same time, the one with the lower id keeps it.
        let isBehind = own.takeovers == record.takeovers && own.takeovers > 0 && peer.string < id.string
        return own.takeovers < record.takeovers || isBehind
    }

    /// Returns how often a thing was taken over, as far as this gateway knows.
    package func takeovers(of thing: CoatyUUID) -> Int {
        max(own[thing]?.takeovers ?? 0, others.values.compactMap { $0[thing]?.takeovers }.max() ?? 0)
    }
}
