import { lstat, unlink } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import type { SocketAddress } from './listen-address.js';

/**
 * A socket in the file system that a killed server left behind is taken over; one with a listener is not, nor is a file
 * of another kind.
 */
export async function listenOn(server: Server, address: SocketAddress): Promise<void> {
  try {
    await listenOnce(server, address);
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    if (!isTaken || !('path' in address) || !(await lstat(address.path)).isSocket() || (await answers(address.path))) {
      throw error;
    }
    await unlink(address.path);
    await listenOnce(server, address);
  }
}

function listenOnce(server: Server, address: SocketAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
