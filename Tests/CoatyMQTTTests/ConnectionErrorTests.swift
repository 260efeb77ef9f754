import CMosquitto
import Coaty
import Glibc
import TestSupport
import Testing

@testable import CoatyMQTT

/// Causes that libmosquitto reports in another way in another version; BrokersTests has all causes with real brokers.
@Suite(.exclusive) struct ConnectionErrorTests {
    private let asked = Self.handshake(mayRefuseCertificate: true)
    private let over = Self.handshake(mayRefuseCertificate: false)

    private static func handshake(mayRefuseCertificate: Bool) -> cmosq_handshake {
        var handshake = cmosq_handshake()
        (handshake.is_over, handshake.may_refuse_certificate) = (true, mayRefuseCertificate)
        return handshake
    }

    private func reason(
        _ code: Int32,
        errno: Int32 = 0,
        wasConnected: Bool = false,
        handshake: cmosq_handshake? = cmosq_handshake(),
        diagnosis: TLSDiagnosis = TLSDiagnosis()
    ) -> ConnectionError.Reason {
        ConnectionError(
            MosquittoError(code: code, errno: errno),
            address: "broker.example:8883",
            refusal: nil,
            wasConnected: wasConnected,
            isSocketConnected: true,
            handshake: handshake,
            diagnosis: diagnosis,
            disconnectReason: nil
        ).reason
    }

    /// libmosquitto 2.0.21 reports both, by turns, and logs nothing. 2.0.11 logs an unexpected end.
    @Test func connectionClosedDuringTheHandshakeMeansThatTLSIsNotOffered() {
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: EPROTO) == .tlsNotOffered)
        #expect(reason(Int32(MOSQ_ERR_TLS.rawValue)) == .tlsNotOffered)
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: ECONNRESET) == .tlsNotOffered)
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: ECONNRESET, handshake: nil) == .closed)
        var diagnosis = TLSDiagnosis()
        diagnosis.note("OpenSSL Error[0]: error:0A000126:SSL routines::unexpected eof while reading", verification: nil)
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: EPROTO, diagnosis: diagnosis) == .tlsNotOffered)
    }

    @Test func endAfterTheHandshakeMeansThatTheCertificateIsRefusedIfTheBrokerHasAskedForOne() {
        var diagnosis = TLSDiagnosis()
        diagnosis.note("OpenSSL Error[0]: error:0A000126:SSL routines::unexpected eof while reading", verification: nil)
        let end = Int32(MOSQ_ERR_ERRNO.rawValue)
        for error in [ECONNRESET, EPIPE, EPROTO] {
            #expect(reason(end, errno: error, handshake: asked) == .tlsClientCertificate)
            #expect(reason(end, errno: error, handshake: asked, diagnosis: diagnosis) == .tlsClientCertificate)
            #expect(reason(end, errno: error, wasConnected: true, handshake: asked) == .closed)
            #expect(reason(end, errno: error, handshake: over) == .closed)
            #expect(reason(end, errno: error, wasConnected: true) == .closed)
        }
    }

    @Test func otherProtocolErrorsAreNotTakenForAPortWithoutTLS() {
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: EPROTO, wasConnected: true) == .closed)
        #expect(reason(Int32(MOSQ_ERR_ERRNO.rawValue), errno: EPROTO, handshake: nil) == .network)
        #expect(reason(Int32(MOSQ_ERR_PROTOCOL.rawValue)) == .protocol)
        #expect(reason(Int32(MOSQ_ERR_TLS.rawValue), wasConnected: true) == .closed)
        var diagnosis = TLSDiagnosis()
        diagnosis.note("OpenSSL Error[0]: error:0A000412:SSL routines::sslv3 alert bad certificate", verification: nil)
        #expect(reason(Int32(MOSQ_ERR_TLS.rawValue), diagnosis: diagnosis) == .tlsClientCertificate)
    }
}
