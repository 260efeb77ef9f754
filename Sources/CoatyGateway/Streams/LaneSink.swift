/// Hands the responses to a request to a lane.
struct LaneSink: ResponseSink {
    let lane: Lane
    let outlet: Outlet

    func take(_ frame: StreamFrame) -> Bool { outlet.append(response: frame, to: lane) }

    func end(_ reason: StreamFrame.EndReason) { outlet.end(lane, reason) }
}
