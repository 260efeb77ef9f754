import Base
import CCurl
import CEmbedded
import CMicroHTTPD
import CMosquitto
import COpenSSL
import CWebSockets
import CoatyGateway

/// The version, the commit and the libraries of the binary.
struct BuildInfo: CustomStringConvertible {
    var description: String {
        var (major, minor, revision): (CInt, CInt, CInt) = (0, 0, 0)
        mosquitto_lib_version(&major, &minor, &revision)
        return """
            coaty-gateway \(GatewayVersion.text)
            commit \(String(cString: embedded_commit()))
            Swift standard library \(_SwiftStdlibVersion.current)
            libmosquitto \(major).\(minor).\(revision)
            libmicrohttpd \(String(cString: MHD_get_version()))
            libwebsockets \(String(cString: lws_get_library_version()))
            \(String(cString: OpenSSL_version(OPENSSL_VERSION)))
            \(String(cString: curl_version()).prefix { $0 != " " })
            """
    }
}
