/**
 * The sockets of one channel of the gRPC package.
 *
 * Why: a channel that is closed while it connects forgets its socket, which then stays open for as
 * long as the other side accepts and says nothing. Invariants: 1. A socket is known from the moment
 * in which it is connected until it is closed. 2. Nothing else of a connection is touched.
 */
import type { Socket } from "node:net";
import type * as grpc from "@grpc/grpc-js";

type MakeConnector = grpc.ChannelCredentials["_createSecureConnector"];

export class ChannelSockets {
  private readonly open = new Set<Socket>();

  /** `credentials`, of which no other channel is made; what connects with them is known here. */
  watch(credentials: grpc.ChannelCredentials): grpc.ChannelCredentials {
    const make: MakeConnector = credentials._createSecureConnector.bind(credentials);
    credentials._createSecureConnector = (...way) => {
      const connector = make(...way);
      const connect = connector.connect.bind(connector);
      connector.connect = (socket) => {
        this.open.add(socket);
        socket.once("close", () => this.open.delete(socket));
        return connect(socket);
      };
      return connector;
    };
    return credentials;
  }

  destroy(): void {
    for (const socket of this.open) socket.destroy();
  }
}
