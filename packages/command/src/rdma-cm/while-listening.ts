import type { CmListener, ConnectionManager, WaitingRequest } from 'rocev2/internal/cm';
import type { Output } from '../output.js';

export async function whileListening<R extends WaitingRequest, T>(
  cm: ConnectionManager,
  listener: CmListener<R>,
  output: Output,
  work: (listener: CmListener<R>) => Promise<T>,
): Promise<T> {
  const { interrupted } = output.io;
  const stop = () => listener.close();
  interrupted.addEventListener('abort', stop, { once: true });
  output.note(`listening on ${cm.device.address} port ${listener.port}`);
  try {
    return await work(listener);
  } finally {
    interrupted.removeEventListener('abort', stop);
    listener.close();
  }
}
