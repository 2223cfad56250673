import { REJ_INVALID_SERVICE_ID } from 'rocev2/internal/cm';
import { ack, connectionCase, silence, type TestCase } from '../step.js';
import { ping } from './request-packets.js';

export const CONNECTION_CASES: readonly TestCase[] = [
  {
    name: 'cm/lids',
    rules: [91],
    about: 'The REQ has LIDs, which mean nothing over Ethernet.',
    needs: ['RDMA CM'],
    connect: () => ({ lid: 0x1234 }),
    steps: () => [ping(0), ack(0, 1)],
  },
  {
    name: 'cm/lost-rep',
    rules: [93],
    about: 'The REQ comes again, as if the REP had been lost. The REP also comes again.',
    needs: ['RDMA CM'],
    connect: () => ({ rtu: false }),
    steps: () => [{ do: 'repeat', message: 'REQ' }, ping(0), ack(0, 1)],
  },
  connectionCase(
    'cm/lost-drep',
    [93],
    'The DREQ comes again, as if the DREP had been lost. It is answered again.',
    () => [ping(0), ack(0, 1), { do: 'repeat', message: 'DREQ' }],
  ),
  {
    name: 'cm/nobody',
    rules: [94],
    about: 'A REQ to a port where nobody listens is refused at once.',
    needs: ['RDMA CM'],
    refusedWith: REJ_INVALID_SERVICE_ID,
    steps: () => [],
  },
  {
    name: 'cm/no-reads',
    rules: [95],
    about: 'The REQ wants no READs in either direction. The connection is made all the same.',
    needs: ['RDMA CM'],
    connect: () => ({ initiatorDepth: 0, responderResources: 0 }),
    steps: () => [ping(0), ack(0, 1)],
  },
  {
    name: 'cm/data-before-rtu',
    rules: [96],
    about: 'No RTU comes, but a request. It is answered.',
    needs: ['RDMA CM'],
    connect: () => ({ rtu: false }),
    steps: () => [ping(0), ack(0, 1)],
  },
  connectionCase(
    'cm/stale',
    [97],
    'A REQ names the queue pair of a connection, as after a restart. It is refused by REJ 10, or the old connection ends.',
    () => [ping(0), ack(0, 1), { do: 'request again' }, ping(1), silence],
  ),
];
