import Coaty
import Coordination

extension Peers {
    /// The copy of a part of another gateway.
    struct Copy {
        var revision: UInt64 = 0
        /// The revision of the original, as its gateway has last announced.
        var latest: UInt64 = 0
        var lastWanted: Duration?

        var isComplete: Bool { revision > 0 && revision == latest }
    }

    /// A part of this gateway, and its copies of those of the others.
    struct Part {
        let part: any PeerPart
        var revision: UInt64 = 0
        var lastWhole: Duration?
        var isWanted = false
        /// By session.
        var copies: [PeerMessage.Session: Copy] = [:]
    }

    /// A question of this gateway that waits for its answer.
    struct Question {
        let continuation: CheckedContinuation<[UInt8], any Error>
        let timer: Deadline
    }

    struct State {
        var table: PeerTable
        var sequence: UInt64 = 0
        var parts: [String: Part] = [:]
        var questions: [UInt64: Question] = [:]
        var lastQuestion: UInt64 = 0
        var lastSent: Duration?
        /// Whether a sign of life must be sent soon.
        var isDue = true
        var isStopping = false
        /// The URL at which the others may reach this gateway.
        var url: String?
        var findURL: (@Sendable () -> String?)?
        /// Whether silent peers are being probed. Otherwise, requests that time out would queue.
        var isProbing = false
        /// When the agent came online; nil while it is offline.
        var online: (period: Int, since: Duration)?
        var observations: [Subscription] = []
        var task: Task<Void, Never>?

        /// Forgets the copies of a gateway that has left. If it comes back, it sends its parts as a whole.
        mutating func forgetCopies(of id: CoatyUUID) {
            for peer in table.peers.values where peer.id == id {
                for name in parts.keys { parts[name]?.copies[peer.session] = nil }
            }
        }
    }
}
