import Base
import HTTPServer
import WebSocketServer

/// The servers charge incomplete bodies and messages.
extension MemoryAccount: HTTPServer.ByteBudget, WebSocketServer.ByteBudget {}
