import CMosquitto
import Coaty
import Foundation
import TestSupport
import Testing

@testable import CoatyMQTT

/// The packets that are written and read without libmosquitto, over a pair of sockets.
@Suite(.exclusive) struct PublicationPacketsTests {
    private struct Message: Equatable {
        let topic: String
        let payload: [UInt8]
    }

    private final class Received: MosquittoClientDelegate {
        var messages: [Message] = []
        var tooLong: [Int] = []
        func connackReceived(_: Int32, _: ConnectionProperties) {}
        func publicationsWritten(_: Int) {}
        func received(topic: String, payload: [UInt8], isRetained _: Bool) {
            messages.append(Message(topic: topic, payload: payload))
        }
        func receivedTooLong(topic _: String, size: Int) { tooLong.append(size) }
        func subackReceived(_: Int32, isGranted _: [Bool]) {}
        func unsubackReceived(_: Int32) {}
    }

    /// Two connected sockets that do not block.
    private final class Sockets {
        let broker: Int32
        let agent: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
            (broker, agent) = (ends[0], ends[1])
        }

        deinit {
            close(broker)
            close(agent)
        }

        func send(_ bytes: some Collection<UInt8>) throws {
            let bytes = Array(bytes)
            try #require(write(broker, bytes, bytes.count) == bytes.count)
        }

        /// Returns the bytes that the broker has received.
        func take() -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = read(broker, &bytes, bytes.count)
            return count > 0 ? Array(bytes[..<count]) : []
        }
    }

    private static let suback: [UInt8] = [0x90, 0x04, 0x00, 0x01, 0x00, 0x80]

    private func reader(
        version: MQTTVersion = .v311,
        maximumPacketSize: Int = 1 << 20,
        maximumMessageSize: Int = 1 << 20
    ) -> PublicationReader {
        PublicationReader(
            version: version,
            maximumPacketSize: maximumPacketSize,
            maximumMessageSize: maximumMessageSize
        )
    }

    /// Returns the bytes of packets as the writer makes them.
    private func packets(_ messages: [Message]) throws -> [UInt8] {
        let sockets = try Sockets()
        var writer = PublicationWriter(version: .v311)
        var bytes: [UInt8] = []
        for message in messages {
            try writer.append(message.topic, message.payload, isRetained: false)
            while writer.hasBytes {
                _ = try writer.send(to: sockets.agent)
                bytes += sockets.take()
            }
        }
        return bytes
    }

    /// The lengths at which the length of the head changes (MQTT 3.1.1, table 2.4).
    @Test(arguments: [0, 1, 124, 125, 16_380, 16_381, 2_097_148, 2_097_149])
    func packetsHaveTheFormOfTheStandard(size: Int) throws {
        let payload = [UInt8](repeating: 7, count: size)
        let bytes = try packets([Message(topic: "a", payload: payload)])
        var length: [UInt8] = []
        var left = 3 + size
        while left >= 128 {
            length.append(UInt8(left % 128) | 0x80)
            left /= 128
        }
        length.append(UInt8(left))
        #expect(bytes == [0x30] + length + [0, 1, UInt8(ascii: "a")] + payload)
    }

    @Test func packetsOfMQTT5HaveNoProperties() throws {
        let sockets = try Sockets()
        var writer = PublicationWriter(version: .v5)
        try writer.append("a", [7, 8], isRetained: false)
        #expect(try writer.send(to: sockets.agent) == 1)
        #expect(sockets.take() == [0x30, 6, 0, 1, UInt8(ascii: "a"), 0, 7, 8])
    }

    @Test func propertiesOfMQTT5AreSkipped() throws {
        let sockets = try Sockets()
        let received = Received()
        let reader = reader(version: .v5)
        // Payload format indicator, and a packet without properties.
        try sockets.send([0x30, 8, 0, 1, UInt8(ascii: "a"), 2, 1, 1, 7, 8, 0x30, 5, 0, 1, UInt8(ascii: "b"), 0, 9])
        _ = try reader.read(sockets.agent, for: received)
        #expect(received.messages == [Message(topic: "a", payload: [7, 8]), Message(topic: "b", payload: [9])])
        // The properties are longer than the packet.
        try sockets.send([0x30, 5, 0, 1, UInt8(ascii: "a"), 9, 1])
        #expect(throws: MosquittoError.self) { _ = try reader.read(sockets.agent, for: received) }
    }

    @Test(arguments: [MQTTVersion.v311, .v5], [1, 120, 121, 122, 123, 16_376, 16_379, 16_380])
    func packetsBeyondTheLimitOfTheBrokerAreRefused(version: MQTTVersion, payload: Int) throws {
        let size = PublicationWriter.packetSize(topicLength: 1, payload: payload, version: version)
        let bytes = [UInt8](repeating: 7, count: payload)
        let sockets = try Sockets()
        var writer = PublicationWriter(version: version)
        writer.maximumPacketSize = size
        try writer.append("a", bytes, isRetained: false)
        _ = try writer.send(to: sockets.agent)
        #expect(sockets.take().count == size)
        writer.maximumPacketSize = size - 1
        let error = #expect(throws: MosquittoError.self) { try writer.append("a", bytes, isRetained: false) }
        #expect(error?.isOperationAtFault == true && !writer.hasBytes)
    }

    @Test func retainedPublicationsHaveTheFlag() throws {
        let sockets = try Sockets()
        var writer = PublicationWriter(version: .v311)
        try writer.append("a", [], isRetained: true)
        #expect(try writer.send(to: sockets.agent) == 1)
        #expect(sockets.take() == [0x31, 3, 0, 1, UInt8(ascii: "a")])
    }

    @Test(arguments: ["", "a/+", "#", String(repeating: "x", count: 65_536), "a\u{0}"])
    func topicsThatCannotBePublishedAreRefused(topic: String) throws {
        var writer = PublicationWriter(version: .v311)
        let error = #expect(throws: MosquittoError.self) { try writer.append(topic, [], isRetained: false) }
        #expect(error?.isOperationAtFault == true)
        #expect(!writer.hasBytes)
    }

    @Test func blockedSocketKeepsTheOrderAndCountsEachPublicationOnce() throws {
        let sockets = try Sockets()
        var writer = PublicationWriter(version: .v311)
        let messages = (0..<40).map { Message(topic: "t/\($0)", payload: [UInt8](repeating: UInt8($0), count: 50_000)) }
        for message in messages { try writer.append(message.topic, message.payload, isRetained: false) }
        var sent = try writer.send(to: sockets.agent)
        #expect(writer.isBlocked && sent < messages.count)
        var bytes: [UInt8] = []
        while writer.hasBytes {
            bytes += sockets.take()
            sent += try writer.send(to: sockets.agent)
        }
        bytes += sockets.take()
        #expect(sent == messages.count)
        #expect(!writer.isBlocked && writer.stalled == .zero)
        #expect(try bytes == packets(messages))
    }

    @Test func closedConnectionIsAnError() throws {
        let sockets = try Sockets()
        shutdown(sockets.broker, Int32(SHUT_RDWR))
        var writer = PublicationWriter(version: .v311)
        try writer.append("a", [], isRetained: false)
        let error = #expect(throws: MosquittoError.self) { _ = try writer.send(to: sockets.agent) }
        #expect(error?.isOperationAtFault == false)
        #expect(try reader().read(sockets.agent, for: Received()) == .other)
    }

    /// A stream of packets that arrives in two parts, cut at each place.
    @Test func packetsMayArriveInParts() throws {
        let messages = [
            Message(topic: "a", payload: []), Message(topic: "b/c", payload: Array("{}".utf8)),
            Message(topic: "long", payload: [UInt8](repeating: 1, count: 200)),
        ]
        let bytes = try packets(messages) + Self.suback + packets(messages)
        for cut in 0...bytes.count {
            let sockets = try Sockets()
            let (reader, received) = (reader(), Received())
            var others: [UInt8] = []
            for part in [bytes[..<cut], bytes[cut...]] {
                try sockets.send(part)
                loop: while true {
                    switch try reader.read(sockets.agent, for: received) {
                    case .nothing: break loop
                    case .more: continue
                    case .qualityOfService: break loop
                    case .other:
                        // The whole packet is left in the socket.
                        var packet = [UInt8](repeating: 0, count: Self.suback.count)
                        try #require(recv(sockets.agent, &packet, packet.count, 0) == packet.count)
                        others += packet
                    }
                }
            }
            #expect(received.messages == messages + messages, "cut at \(cut)")
            #expect(others == Self.suback, "cut at \(cut)")
        }
    }

    @Test func publicationsLongerThanABufferAreCollected() throws {
        let messages = (0..<4).map {
            let size = 3 * PublicationReader.bufferSize + $0
            return Message(topic: "t/\($0)", payload: [UInt8](repeating: UInt8($0), count: size))
        }
        let sockets = try Sockets()
        let (reader, received) = (reader(), Received())
        var left = try packets(messages)[...]
        while !left.isEmpty {
            let part = left.prefix(10_000)
            left = left.dropFirst(part.count)
            try sockets.send(part)
            while try reader.read(sockets.agent, for: received) == .more {}
        }
        #expect(received.messages == messages)
    }

    /// A message that is longer than the longest packet, in parts: its bytes are not kept.
    @Test(arguments: [2 * PublicationReader.bufferSize, 5_000_000])
    func tooLongPublicationsAreDiscarded(size: Int) throws {
        let sockets = try Sockets()
        let (reader, received) = (reader(maximumPacketSize: 100_000, maximumMessageSize: 20_000), Received())
        let short = Message(topic: "short", payload: [UInt8](repeating: 2, count: 20_000))
        let messages = [Message(topic: "long", payload: [UInt8](repeating: 0x30, count: size)), short]
        var left = try packets(messages + messages)[...]
        while !left.isEmpty {
            let part = left.prefix(10_007)
            left = left.dropFirst(part.count)
            try sockets.send(part)
            while try reader.read(sockets.agent, for: received) == .more {}
        }
        #expect(received.tooLong == [size, size])
        #expect(received.messages == [short, short])
    }

    @Test(arguments: [[0x32, 0x05, 0, 1, 0x61, 0, 1], [0x50, 0x02, 0, 1], [0x62, 0x02, 0, 1], [0xC0, 0x00]])
    func packetsThatAreAnsweredAreLeftInTheSocket(packet: [UInt8]) throws {
        let sockets = try Sockets()
        let (reader, received) = (reader(), Received())
        let message = Message(topic: "t", payload: [1])
        try sockets.send(packets([message]) + packet)
        #expect(try reader.read(sockets.agent, for: received) == .qualityOfService)
        #expect(received.messages == [message])
        var left = [UInt8](repeating: 0, count: 100)
        #expect(recv(sockets.agent, &left, left.count, 0) == packet.count)
        #expect(Array(left[..<packet.count]) == packet)
    }

    /// poll(2) reports the end again and again; libmosquitto detects it.
    @Test(arguments: [[0x30], [0x90, 0x04, 0x00]])
    func endBehindAnIncompletePacketIsDetected(bytes: [UInt8]) throws {
        let sockets = try Sockets()
        let (reader, received) = (reader(), Received())
        try sockets.send(bytes)
        #expect(try reader.read(sockets.agent, for: received) == .nothing)
        #expect(try reader.read(sockets.agent, for: received) == .nothing)
        shutdown(sockets.broker, Int32(SHUT_RDWR))
        #expect(try reader.read(sockets.agent, for: received) == .other)
    }

    @Test func noPartOfATooLongPublicationIsDelivered() throws {
        let sockets = try Sockets()
        let (reader, received) = (reader(maximumPacketSize: 100_000), Received())
        try sockets.send(packets([Message(topic: "long", payload: [UInt8](repeating: 0, count: 150_000))]))
        while try reader.read(sockets.agent, for: received) == .more {}
        #expect(received.tooLong == [150_000])
        #expect(received.messages.isEmpty)
    }

    @Test func tooLongMessagesAreReportedAndTheNextOneIsRead() throws {
        let sockets = try Sockets()
        let (reader, received) = (reader(maximumMessageSize: 100), Received())
        let short = Message(topic: "short", payload: [UInt8](repeating: 2, count: 100))
        try sockets.send(packets([Message(topic: "long", payload: [UInt8](repeating: 1, count: 101)), short]))
        #expect(try reader.read(sockets.agent, for: received) == .nothing)
        #expect(received.tooLong == [101])
        #expect(received.messages == [short])
    }

    /// The head is enough: the rest is not awaited.
    @Test(arguments: [
        ([0x90, 0xFF, 0xFF, 0x7F], MOSQ_ERR_OVERSIZE_PACKET),
        ([0x30, 0x80, 0x80, 0x80, 0x80], MOSQ_ERR_PROTOCOL), ([0x30, 0x00], MOSQ_ERR_PROTOCOL),
        ([0x30, 0x02, 0x00, 0x00], MOSQ_ERR_PROTOCOL), ([0x30, 0x03, 0x00, 0x02, 0x61], MOSQ_ERR_PROTOCOL),
    ])
    func malformedPacketsEndTheConnection(bytes: [UInt8], code: mosq_err_t) throws {
        let sockets = try Sockets()
        try sockets.send(bytes)
        let received = Received()
        let error = #expect(throws: MosquittoError.self) {
            _ = try reader().read(sockets.agent, for: received)
        }
        #expect(error?.code == Int32(code.rawValue))
        #expect(received.messages.isEmpty)
    }
}
