import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A proxy on loopback to that port, which delays what passes by so many milliseconds each way and keeps its order. */
export async function startSlowLink(port, oneWay) {
  const sockets = new Set();
  const keep = (socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((incoming) => {
    const outgoing = keep(connect(port, '127.0.0.1'));
    pipeSlowly(keep(incoming), outgoing, oneWay);
    pipeSlowly(outgoing, incoming, oneWay);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

function pipeSlowly(from, to, delay) {
  from.on('data', (chunk) => setTimeout(() => to.writable && to.write(chunk), delay));
  from.on('close', () => setTimeout(() => to.end(), delay));
}
