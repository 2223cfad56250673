// @ts-check
/**
 * One end of a measurement, in a process of its own: `node child.js ROLE TRANSPORT MEASURE OPTIONS`. Speaks JSON lines with the parent:
 *
 *   server: {ready: address}           then reads {hello}, says {connected}, reads {phase}s and {stop}, says its result
 *   client: {hello}                    then reads {go}, says each {phase} that begins, and its result
 *   either: {failed: why}              instead, and ends
 *
 * Every result has the times of its `phases`: none for what has none. Those of the server begin a moment later.
 */

import process from 'node:process';
import { jsonLines } from './lines.js';
import { PhaseTimes } from './phases.js';

const [role, transport, measure, optionsText] = process.argv.slice(2);
const options = JSON.parse(optionsText);
const parent = jsonLines(process.stdin, process.stdout);
const times = new PhaseTimes();

/** Ends with the reason, which is also an error that nobody has caught. */
function fail(/** @type {unknown} */ error) {
  parent.say({ failed: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
process.on('uncaughtException', fail);

/** The two ends of a transport. Only what is measured is loaded. */
async function endsOf(/** @type {string} */ name) {
  if (name === 'rocev2') {
    const { measureRocev2, serveRocev2 } = await import('./rocev2.js');
    return { serve: serveRocev2, client: measureRocev2 };
  }
  const { measureChannel, serveChannel } = await import('./message-channels.js');
  return {
    serve: (/** @type {string} */ what, /** @type {any} */ how) => serveChannel(name, what, how),
    client: (/** @type {string} */ what, /** @type {any} */ how) => measureChannel(name, what, how),
  };
}

async function main() {
  const ends = await endsOf(transport);
  if (role === 'server') {
    const server = await ends.serve(measure, options);
    parent.say({ ready: server.address });
    await server.meet((await parent.next()).hello);
    parent.say({ connected: true });
    for (let line = await parent.next(); line.stop === undefined; line = await parent.next()) times.begin(line.phase);
    times.end();
    parent.say({ ...server.result(), phases: times.all });
    await server.close();
  } else {
    const client = await ends.client(measure, options);
    parent.say({ hello: client.hello });
    await parent.next();
    const result = await client.run((/** @type {import('./phases.js').PhaseName} */ phase) => {
      parent.say({ phase });
      times.begin(phase);
    });
    times.end();
    parent.say({ ...result, phases: times.all });
    await client.close();
  }
}

await main().catch(fail);
process.exit();
