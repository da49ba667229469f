/** Requests that wait once more, on the port that they share with REST. */
process.env["SVC_GRPC_FRONT"] = "https";
await import("./watches.test.js");
