import Access
import Coaty

/// Mirrors: feeds without users that a gateway of a cluster keeps for the clients of other gateways, so that they can
/// resume here.
extension FeedHub {
    struct Mirrors {
        let maximum: Int
        var count = 0
        /// The observations of other gateways. A feed of one of them becomes a mirror when clients no longer need it.
        var wanted: Set<Observation> = []
        /// The observations whose feeds clients may have begun to use, or no longer use.
        private(set) var changed: Set<Observation> = []

        init(maximum: Int = 0) { self.maximum = maximum }

        var hasRoom: Bool { count < maximum }

        mutating func noteChange(of request: Observation) {
            if maximum > 0, request.peerName != nil { changed.insert(request) }
        }

        mutating func takeChanged() -> Set<Observation> {
            defer { changed = [] }
            return changed
        }
    }

    /// The number of mirrors.
    package var mirrorCount: Int { state.withLock(\.mirrors.count) }

    /// Keeps a feed for the clients of other gateways.
    ///
    /// - Returns: false if there are too many.
    func mirror(_ request: Observation) -> Bool {
        let (upstream, isKept) = state.withLock { state -> (FeedUpstream?, Bool) in
            state.mirrors.wanted.insert(request)
            guard state.entries[request] == nil else { return (nil, true) }
            guard state.mirrors.hasRoom else { return (nil, false) }
            let feed = makeFeed(request, isMirror: true)
            state.entries[request] = Entry(feed: feed, isMirror: true)
            state.mirrors.count += 1
            return (FeedUpstream(hub: self, feed: feed, request: request, client: .address(.other)), true)
        }
        // Outside the lock: the session may report a status during this call.
        upstream?.begin()
        return isKept
    }

    /// Ends the mirror of an observation that no other gateway needs any longer.
    func endMirror(_ request: Observation) {
        let feed = state.withLock { state -> Feed? in
            state.mirrors.wanted.remove(request)
            guard let entry = state.entries[request], entry.isMirror else { return nil }
            state.entries[request] = nil
            state.mirrors.count -= 1
            return entry.feed
        }
        feed?.close()
    }

    /// The observations of clients that other gateways can mirror, including those within the resume window.
    var ownObservations: [Observation] {
        state.withLock { state in
            state.entries.compactMap { request, entry in
                entry.isMirror || request.peerName == nil ? nil : request
            }
        }
    }

    /// Returns the observations whose use may have changed since the last call, and whether clients use them.
    func takeChangedObservations() -> [(Observation, isUsed: Bool)] {
        state.withLock { state in
            state.mirrors.takeChanged().map { request in
                (request, isUsed: state.entries[request].map { !$0.isMirror } ?? false)
            }
        }
    }
}

extension FeedHub.State {
    /// The number of feeds that are no mirrors.
    var ownFeeds: Int { entries.count - mirrors.count }

    /// Takes a mirror for a client, and counts a user.
    ///
    /// - Returns: nil if there is none.
    mutating func adopt(_ request: Observation) -> Feed? {
        guard var entry = entries[request], entry.isMirror else { return nil }
        entry.isMirror = false
        entry.users = 1
        entries[request] = entry
        mirrors.count -= 1
        entry.feed.setMirror(false)
        return entry.feed
    }

    /// Removes a feed without users, or keeps it as a mirror.
    mutating func retire(_ request: Observation) -> FeedHub.Retirement {
        mirrors.noteChange(of: request)
        guard var entry = entries[request] else { return FeedHub.Retirement(feed: nil) }
        guard mirrors.hasRoom, mirrors.wanted.contains(request) else {
            entries[request] = nil
            return FeedHub.Retirement(feed: entry.feed)
        }
        entry.isMirror = true
        entries[request] = entry
        mirrors.count += 1
        entry.feed.setMirror(true)
        return FeedHub.Retirement(feed: nil)
    }
}
