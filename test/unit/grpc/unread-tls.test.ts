/** Clients that do not read once more, on the port that calls share with REST. */
process.env["SVC_GRPC_FRONT"] = "https";
await import("./unread.test.js");
