/**
 * Sentences of audits, ladders and readers of captures in Chinese. `{name}` stands for a number, a name or a sentence.
 */

import { filled } from '@rocev2/command/plot';
import type { Language } from './texts.js';

const SENTENCES: ReadonlyArray<readonly [en: string, zh: string]> = [
  // Packets and their lengths
  [
    'the IPv4 header has options; expected header length 5, DF set, fragment offset 0',
    'IPv4 首部有选项；应为首部长度 5、设置 DF、分片偏移 0',
  ],
  [
    'DF is not set, or the packet is a fragment; expected header length 5, DF set, fragment offset 0',
    '没有设置 DF，或者报文是分片；应为首部长度 5、设置 DF、分片偏移 0',
  ],
  [
    'extension headers between IPv6 and UDP; expected next header 17 (UDP)',
    'IPv6 与 UDP 之间有扩展首部；下一个首部应为 17（UDP）',
  ],
  [
    'the IP length ends at byte {ip}, the UDP length at byte {udp} of the packet; the ICRC is right for the first',
    'IP 长度到报文的第 {ip} 字节，UDP 长度到第 {udp} 字节；按前者计算 ICRC 正确',
  ],
  [
    'the IP length ends at byte {ip}, the UDP length at byte {udp} of the packet; expected both at the end of the ICRC',
    'IP 长度到报文的第 {ip} 字节，UDP 长度到第 {udp} 字节；两者都应到 ICRC 的末尾',
  ],
  ['a UDP payload of {bytes} bytes has no room for BTH and ICRC', '{bytes} 字节的 UDP 载荷容不下 BTH 和 ICRC'],
  ['the UDP checksum {sum} is wrong; expected 0 or the right one', 'UDP 校验和 {sum} 错误；应为 0 或正确的值'],
  [
    'a packet with a right ICRC goes to UDP port {port}; expected 4791',
    'ICRC 正确的报文发往 UDP 端口 {port}；应为 4791',
  ],
  ['the packet carries the ICRC {carried}; {right} is correct', '报文携带的 ICRC 为 {carried}；正确的是 {right}'],
  ['opcode {opcode} is reserved', '操作码 {opcode} 是保留的'],
  ['the transport version is {version}; expected 0', '传输版本为 {version}；应为 0'],
  [
    'pad count {pad} in a UDP payload of {bytes} bytes; expected a payload with pad that is a multiple of 4 and not shorter than its pad',
    '{bytes} 字节的 UDP 载荷中填充数为 {pad}；载荷加填充应为 4 的倍数，且不短于填充',
  ],
  [
    '{operation} in a UDP payload of {bytes} bytes: it is too short for the headers of this opcode',
    '{bytes} 字节的 UDP 载荷中的 {operation}：容不下该操作码的首部',
  ],
  [
    '{operation} in a UDP payload of {bytes} bytes: this opcode has no payload',
    '{bytes} 字节的 UDP 载荷中的 {operation}：该操作码没有载荷',
  ],
  [
    'reserved bits are {four} in byte 4 and {eight} in byte 8; expected 0',
    '第 4 字节的保留位为 {four}，第 8 字节为 {eight}；应为 0',
  ],
  [
    '{operation} has Solicited Event set; expected it on LAST or ONLY',
    '{operation} 设置了 Solicited Event；应只在 LAST 或 ONLY 中设置',
  ],
  ['the RETH says {bytes} bytes; expected at most {most}', 'RETH 给出 {bytes} 字节；最多应为 {most}'],
  [
    'an ATOMIC WRITE carries {bytes} bytes to an address that is no multiple of 8, and its RETH says {length}; expected 8 of both, aligned',
    'ATOMIC WRITE 携带 {bytes} 字节，地址不是 8 的倍数，RETH 给出 {length}；两者都应为 8，且地址对齐',
  ],
  [
    'an ATOMIC WRITE carries {bytes} bytes, and its RETH says {length}; expected 8 of both, aligned',
    'ATOMIC WRITE 携带 {bytes} 字节，RETH 给出 {length}；两者都应为 8，且地址对齐',
  ],
  [
    'the FETH is {feth}; expected placement types 1 and 2, level 0 or 1, and no other bits',
    'FETH 为 {feth}；放置类型应为 1 和 2，级别应为 0 或 1，其他位应为 0',
  ],
  [
    'the syndrome is {code} ({name}); expected ACK, RNR NAK, or NAK 0x60 to 0x63',
    'syndrome 为 {code}（{name}）；应为 ACK、RNR NAK 或 NAK 0x60 到 0x63',
  ],
  ['a CNP with {what}; expected BECN, and everything else 0', 'CNP 带有 {what}；应只有 BECN，其余为 0'],
  ['a CNP, and no packet has come with a mark since the last one', '一个 CNP，但上一个 CNP 之后没有收到带标记的报文'],
  ['DSCP {dscp}; this flow began with {first}', 'DSCP 为 {dscp}；该流开始时为 {first}'],
  ['UDP source port {port}; this flow began with {first}', 'UDP 源端口为 {port}；该流开始时为 {first}'],
  [
    '{operation} is ECN-capable; the first packet with data was not ECN-capable',
    '{operation} 支持 ECN；第一个数据报文不支持',
  ],
  [
    '{operation} is not ECN-capable; the first packet with data was ECN-capable',
    '{operation} 不支持 ECN；第一个数据报文支持',
  ],
  ['a CM message with {error}', 'CM 消息有误：{error}'],
  ['a REJ with reason {reason}, which RoCEv2 does not have', 'REJ 的原因为 {reason}，RoCEv2 没有这个原因'],
  [
    'the {what} of {address} grows by {step} in {times} of the last {all} connections; expected random numbers',
    '{address} 最近 {all} 个连接中有 {times} 次 {what} 增加 {step}；应为随机数',
  ],
  // Messages and requests
  ['{operation} continues no message of its kind', '{operation} 之前没有同类的消息'],
  ['{operation} begins inside a {kind}', '{operation} 在 {kind} 消息中间开始'],
  ['{operation} carries {bytes} bytes; expected the path MTU', '{operation} 携带 {bytes} 字节；应为路径 MTU'],
  [
    '{operation} carries {bytes} bytes; expected the path MTU {mtu}',
    '{operation} 携带 {bytes} 字节；应为路径 MTU {mtu}',
  ],
  [
    '{operation} carries {bytes} bytes; the path MTU of the connection is {mtu}',
    '{operation} 携带 {bytes} 字节；连接的路径 MTU 为 {mtu}',
  ],
  ['{operation} carries {bytes} bytes; expected at most {most}', '{operation} 携带 {bytes} 字节；最多应为 {most}'],
  [
    '{operation} carries {bytes} bytes; expected {least} to {most}',
    '{operation} 携带 {bytes} 字节；应为 {least} 到 {most}',
  ],
  ['a WRITE ends after {bytes} bytes; its RETH says {length}', 'WRITE 在 {bytes} 字节后结束；其 RETH 给出 {length}'],
  ['a WRITE carries {bytes} bytes; its RETH says {length}', 'WRITE 携带 {bytes} 字节；其 RETH 给出 {length}'],
  [
    '{range} skipped before {operation}, and the IP identification shows that no packet is missing',
    '{operation} 之前跳过了 {range}，而 IP 标识表明没有报文缺失',
  ],
  [
    'packet {number} answers PSN {psn}, before PSN {sent} was sent for the first time',
    '报文 {number} 应答 PSN {psn}，而 PSN {sent} 当时还没有首次发送',
  ],
  ['{count} PSNs are outstanding; expected at most {most}', '有 {count} 个 PSN 未确认；最多应为 {most}'],
  [
    '{operation} has PSN {psn}, which belongs to the READ of packet {number}',
    '{operation} 的 PSN 为 {psn}，它属于报文 {number} 的 READ',
  ],
  [
    'a READ is asked for again from PSN {psn} with {asked}; expected {expected}, or less',
    '从 PSN {psn} 重新请求 READ：{asked}；应为 {expected}，或更少',
  ],
  [
    '{operation} begins message {message} of the connection; the responder has given credits for {limit}, and one more may ask',
    '{operation} 开始连接的第 {message} 条消息；响应端只给了 {limit} 条的信用，另外只能再有一条用于询问',
  ],
  // Answers
  [
    'acknowledges up to PSN {psn} with MSN {msn}, after packet {number} has acknowledged up to PSN {before} with MSN {newest}',
    '确认到 PSN {psn}，MSN {msn}；而报文 {number} 已经确认到 PSN {before}，MSN {newest}',
  ],
  [
    'the MSN is {msn}; the messages up to PSN {psn} make it {expected}',
    'MSN 为 {msn}；到 PSN {psn} 为止的消息使它应为 {expected}',
  ],
  [
    'a second NAK for PSN {psn}, which has not been sent again since the NAK of packet {number}',
    '对 PSN {psn} 的第二个 NAK；报文 {number} 的 NAK 之后它还没有重传',
  ],
  [
    'the READ of packet {number} is answered after the READ or atomic of packet {other}: more than {limit} were outstanding',
    '报文 {number} 的 READ 在报文 {other} 的 READ 或原子操作之后才应答：未完成的超过 {limit} 个',
  ],
  ['{operation} with PSN {psn}, which no READ has asked for', '{operation}，PSN {psn}，没有 READ 请求过它'],
  [
    '{operation} is response {place} of {count} to the READ of packet {number}',
    '{operation} 是报文 {number} 的 READ 的第 {place} 个响应，共 {count} 个',
  ],
  [
    'the response with PSN {psn} carries {bytes} bytes; the READ of packet {number} expects {expected}',
    'PSN {psn} 的响应携带 {bytes} 字节；报文 {number} 的 READ 应得到 {expected}',
  ],
  [
    '{operation} with PSN {psn} behind the fatal NAK of packet {number}, which acknowledges it',
    '{operation}，PSN {psn}，在确认它的致命 NAK（报文 {number}）之后才发出',
  ],
  [
    '{operation} with PSN {psn} after the fatal NAK of packet {number}; expected silence',
    '致命 NAK（报文 {number}）之后还有 {operation}，PSN {psn}；应不再应答',
  ],
  [
    '{answer} acknowledges packet {number}, which is out of the order of its message; expected NAK 0x61',
    '{answer} 确认了报文 {number}，而它在消息中的次序有误；应为 NAK 0x61',
  ],
  [
    '{answer} acknowledges PSNs that were left out before packet {number}; expected NAK 0x60 for the first of them',
    '{answer} 确认了报文 {number} 之前缺失的 PSN；应对其中第一个发送 NAK 0x60',
  ],
  [
    'NAK 0x62 refuses the {what} of packet {number}, which has no bytes: its R_Key is not to be checked',
    'NAK 0x62 拒绝了报文 {number} 的 {what}，而它是零字节的：不应检查其 R_Key',
  ],
  // Recovery
  [
    'packets behind the one that the NAK of packet {number} asks for are sent again, and that one is not',
    '报文 {number} 的 NAK 所要求的报文没有重传，重传的是它之后的报文',
  ],
  [
    'goes back once more on the NAK of packet {number}, which is about packets that were on their way',
    '因报文 {number} 的 NAK 再次回退，而该 NAK 针对的是当时在途的报文',
  ],
  [
    'sent again {times} times on timeouts without an answer; RDMA CM says {limit}',
    '因超时且没有应答而重传 {times} 次；RDMA CM 约定 {limit} 次',
  ],
  [
    'sent again after {times} RNR NAKs without progress; RDMA CM says {limit}',
    '在 {times} 个 RNR NAK 之后仍重传而没有进展；RDMA CM 约定 {limit} 次',
  ],
  [
    'sent again without a NAK before the transport timeout of {time} was over',
    '没有 NAK，在传输超时 {time} 到期之前就重传',
  ],
  [
    'sent again after {time} of silence; expected within {count} transport timeouts of {timeout}',
    '沉默 {time} 之后才重传；应在 {count} 个传输超时（每个 {timeout}）之内',
  ],
  [
    'sent again {time} after the RNR NAK of packet {number}, which asks for {wait}',
    '在报文 {number} 的 RNR NAK 之后 {time} 就重传，而它要求等待 {wait}',
  ],
  // Ladders
  ['Lost before this point, or not captured.', '在此之前丢失，或没有被抓到。'],
  ['It asks for packet {number} again, and for all later packets.', '它要求重传报文 {number} 以及之后的所有报文。'],
  ['It did not arrive: packet {number} is a NAK that asks for it.', '它没有到达：报文 {number} 是要求重传它的 NAK。'],
  ['Retransmitted, as its request was. {before}', '与其请求一样是重传的。{before}'],
  ['Retransmitted, as its request was.', '与其请求一样是重传的。'],
  ['Retransmitted without a NAK. {before}', '没有 NAK 而重传。{before}'],
  ['Retransmitted without a NAK.', '没有 NAK 而重传。'],
  ['Retransmitted after the NAK of packet {number}. {before}', '在报文 {number} 的 NAK 之后重传。{before}'],
  ['Retransmitted after the NAK of packet {number}.', '在报文 {number} 的 NAK 之后重传。'],
  ['Packet {number} was the one before.', '上一次发送是报文 {number}。'],
  ['Its ICRC is wrong: the receiver drops it.', '其 ICRC 错误：接收端会丢弃它。'],
  ['It is a {name} of connection management.', '它是连接管理的 {name}。'],
  ['a packet that is missing', '缺失的一个报文'],
  ['{count} packets that are missing', '缺失的 {count} 个报文'],
  // Files
  [
    '{count} other packets of the file are not to UDP port {port}.',
    '文件中另有 {count} 个报文不是发往 UDP 端口 {port} 的。',
  ],
  ['{count} packets to this port are not RoCEv2.', '发往该端口的报文中有 {count} 个不是 RoCEv2。'],
  [
    '{count} packets after the first {most} are not shown: shorten the file with editcap.',
    '只显示前 {most} 个报文，其后的 {count} 个没有显示：可用 editcap 缩短文件。',
  ],
  [
    'The file is damaged at byte {offset}: {reason}. The packets before it are shown.',
    '文件在第 {offset} 字节处损坏（{reason}）。显示其之前的报文。',
  ],
  ['the file ends inside {part}', '文件在 {part} 中间结束'],
  ['Not shown: {reason}.', '没有显示：{reason}。'],
  ['it has no packets', '文件中没有报文'],
  ['it has no RoCEv2 packet that can be read: {why}', '没有可读取的 RoCEv2 报文：{why}'],
  [
    '{packets} link type {links}: Ethernet, RAW IP, Linux cooked captures and BSD loopback are read',
    '{packets} 链路类型 {links}：只能读取 Ethernet、RAW IP、Linux cooked 和 BSD loopback',
  ],
  ['{packets} RoCE v1 (EtherType 0x8915): only RoCEv2 is read', '{packets} RoCE v1（EtherType 0x8915）：只读取 RoCEv2'],
  ['{packets} protected: give the file of --keylog with --keys', '{packets} 受保护：用 rocev2 audit --keys 打开'],
  [
    '{packets} in tunnels or encrypted: capture after the tunnel, or remove it from the file',
    '{packets} 在隧道中或被加密：请在隧道之后抓包，或从文件中去除隧道',
  ],
  [
    '{packets} merged by segmentation offload, and the file does not show where each ends: capture at a switch, or without offload ({command})',
    '{packets} 被分段卸载合并，文件没有表明各自的末尾：请在交换机上抓包，或关闭卸载（{command}）',
  ],
  [
    '{packets} captured too short: capture at least 128 bytes of each (tcpdump -s 128)',
    '{packets} 抓得太短：每个报文至少抓 128 字节（tcpdump -s 128）',
  ],
  [
    '{packets} a correct ICRC {go} to UDP port {port}: use --udp-port {same}',
    '{packets} ICRC 正确，发往 UDP 端口 {port}：使用 --udp-port {same}',
  ],
  ['{count} packets are of', '{count} 个报文为'],
  ['{count} packet is of', '{count} 个报文为'],
  ['{count} packets are', '{count} 个报文'],
  ['{count} packet is', '{count} 个报文'],
  ['{count} packets with', '{count} 个报文'],
  ['{count} packet with', '{count} 个报文'],
  ['--udp-port selects other ports', '--udp-port 选择了其他端口'],
];

const compiled = SENTENCES.map(([en, zh]) => {
  const pattern = en.replaceAll(/[.*+?^$()|[\]\\/]/g, '\\$&').replaceAll(/\{(\w+)\}/g, '(?<$1>.+?)');
  return { pattern: new RegExp(`^${pattern}$`), zh };
});

/** A sentence that an audit, a ladder or a reader made in English; one that is not known stays so. */
export function sentenceIn(language: Language, sentence: string): string {
  if (language === 'en') return sentence;
  for (const { pattern, zh } of compiled) {
    const match = pattern.exec(sentence);
    if (match === null) continue;
    const parts = Object.entries(match.groups ?? {}).map(([name, part]) => [name, sentenceIn(language, part)]);
    return filled(zh, Object.fromEntries(parts));
  }
  return sentence;
}
