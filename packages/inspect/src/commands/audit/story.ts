/** Prints the packets of a finding's two addresses before and after it, as `rocev2 decode` does. */

import type { Output } from '@rocev2/command';
import { CaptureStream, decodeRoce, udpOf } from 'rocev2/internal/capture';
import type { Finding } from '../../audit/ledger.js';
import { PacketLines } from '../decode-lines.js';
import type { ProtectedCapture } from '../protected-capture.js';

const STORIES_MAX = 5;
const PACKETS_BEFORE = 4;
const PACKETS_BEHIND = 2;

interface Story {
  readonly finding: Finding;
  readonly addresses: ReadonlySet<string>;
  readonly lines: string[];
  behind: number;
}

export async function printStories(
  output: Output,
  path: string,
  findings: readonly Finding[],
  keys?: ProtectedCapture,
): Promise<void> {
  const stories = findings.slice(0, STORIES_MAX).map(
    (finding): Story => ({
      finding,
      addresses: new Set(finding.flow.split(/ -> | QP /).slice(0, 2)),
      lines: [],
      behind: PACKETS_BEHIND,
    }),
  );
  const stream = await CaptureStream.open(path);
  const format = new PacketLines(output.colors);
  let number = 0;
  let firstNs: bigint | undefined;
  for await (const chunk of stream.chunks()) {
    for (const captured of chunk) {
      number++;
      firstNs ??= captured.timestampNs;
      const datagram = udpOf(keys?.take(captured) ?? captured);
      if (datagram === undefined) continue;
      const concerned = stories.filter(
        ({ addresses }) => addresses.has(datagram.source.text) && addresses.has(datagram.destination.text),
      );
      if (concerned.length === 0) continue;
      const place = { number, timeNs: Number(captured.timestampNs - firstNs), interfaceId: captured.interfaceId };
      const line = format.next(decodeRoce(datagram, place, true), []);
      for (const story of concerned) tell(story, line.split('\n').at(-1)!, number);
    }
  }
  for (const { finding, lines } of stories) {
    output.line();
    output.line(`${finding.verdict}, ${finding.flow}: ${finding.text}`);
    for (const line of lines) output.line(line);
  }
}

function tell(story: Story, line: string, number: number): void {
  const { packets } = story.finding;
  const [first, last] = [Math.min(...packets), Math.max(...packets)];
  if (packets.includes(number)) story.lines.push(`> ${line}`);
  else if (number < first) {
    story.lines.push(`  ${line}`);
    if (story.lines.length > PACKETS_BEFORE) story.lines.shift();
  } else if (number > last && story.behind-- > 0) story.lines.push(`  ${line}`);
}
