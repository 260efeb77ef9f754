export const view = { id: "alive", title: "Agents & objects", mount() {} }
