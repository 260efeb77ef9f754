import Base
import Feeds
import HTTPServer

extension HTTPStream {
    /// Queues either all frames of a batch as lines, or none. They are joined first: the stream takes and releases each
    /// part separately, which takes longer than copying it.
    ///
    /// - Parameters:
    ///   - beginning: precedes each line.
    ///   - last: precedes the last line; nil for `beginning`.
    ///   - end: follows each line.
    func offer(
        _ batch: ObjectBatch,
        beginning: [UInt8] = [],
        last: [UInt8]? = nil,
        end: [UInt8]
    ) -> (number: Int, FrameOffer) {
        var text: [UInt8] = []
        text.reserveCapacity(batch.count + batch.frames.count * (beginning.count + end.count) + (last?.count ?? 0))
        let lastIndex = batch.frames.endIndex - 1
        for (index, frame) in zip(batch.frames.indices, batch.frames) {
            text += index == lastIndex ? last ?? beginning : beginning
            text += JSONText.line(frame)
            text += end
        }
        let answer = FrameOffer(write([text], holding: batch.charge))
        return (answer == .queued ? batch.frames.count : 0, answer)
    }
}

extension FrameOffer {
    init(_ result: HTTPStream.WriteResult) {
        switch result {
        case .queued: self = .queued
        case .full: self = .full
        case .closed: self = .closed
        }
    }
}
