export const view = { id: "gateway", title: "Gateway", mount() {} }
