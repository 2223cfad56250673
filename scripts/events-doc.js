// Writes docs/events.md from the catalogue of src/port/capture/events.ts, as built: `npm run build && node scripts/events-doc.js`.
// With --check it only says whether the page is what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { EVENTS } from '../build/src/port/capture/events.js';
import { wrap } from './wrap.js';

const page = new URL('../docs/events.md', import.meta.url);

const HEAD = `# Trace events

Generated from \`src/port/capture/events.ts\` by \`scripts/events-doc.js\`.

\`--trace FILE\` of \`rocev2 bw\`, \`lat\` and \`livelock\` (\`trace\` of \`openDevice\`) records what a NIC sends, receives and does.
It has one JSON record per line, in the format of a sequential qlog file (draft-ietf-quic-qlog-main-schema, \`qlog_version\` 0.4) without record
separators. The first record describes the trace; the others are \`{"time", "name", "data"}\`, time in milliseconds since the trace began.

    rocev2 bw write 127.0.0.1 --faults random=0.001 --trace trace.jsonl
    rocev2 decode trace.jsonl --flow
    jq -c 'select(.name == "roce:retransmission")' trace.jsonl
`;

const sections = Object.entries(EVENTS).map(([name, { doc, fields }]) =>
  [
    `## ${name}`,
    '',
    doc,
    '',
    '| field | type | |',
    '|---|---|---|',
    ...Object.entries(fields).map(
      ([field, { type, doc: text, optional }]) => `| \`${field}\` | ${type}${optional ? ', optional' : ''} | ${text} |`,
    ),
    '',
  ].join('\n'),
);

const text = wrap([HEAD, ...sections].join('\n'));
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error('docs/events.md is not what the catalogue says: npm run build && node scripts/events-doc.js');
  process.exitCode = 1;
}
