/**
 * Requirements of rules in Chinese, by their numbers in packages/inspect/docs/rules.md: those that an audit decides.
 */

import type { Language } from './texts.js';

const TITLES_IN_CHINESE: Readonly<Record<number, string>> = {
  1: 'IPv4 首部没有选项，设置 DF，且不是分片。',
  2: 'IPv4 总长度到 ICRC 为止。',
  3: 'IPv6 载荷长度等于 UDP 数据报长度，下一个首部是 UDP。',
  5: '同一队列对的请求、确认和 READ 响应使用同一个 DSCP。',
  6: '不使用拥塞管理时 ECN 为 00，使用时为 01 或 10。',
  7: 'UDP 目的端口为 4791。',
  8: 'UDP 长度到 ICRC 为止。',
  9: 'UDP 校验和为 0 或者正确。',
  10: '一个队列对只用一个 UDP 源端口发送。',
  11: 'ICRC 正确。',
  16: '传输版本为 0，其他版本被丢弃。',
  17: '填充数使载荷为四的倍数。',
  19: 'BTH 的保留位为 0。',
  23: '一条消息的报文依次为 FIRST、MIDDLE、LAST，或者是 ONLY，消息之间不交错。',
  24: '响应端用 NAK 0x61 拒绝错误的报文次序。',
  25: 'FIRST 和 MIDDLE 的载荷正好是一个路径 MTU。',
  26: 'LAST 的载荷为 1 字节到一个路径 MTU。',
  27: 'ONLY 的载荷不超过路径 MTU。',
  28: 'RETH 请求的长度不超过 2^31 字节。',
  29: 'WRITE 的字节数等于其 RETH 给出的长度。',
  30: '操作码在规范的表中，只带有规定的扩展首部。',
  31: 'Solicited Event 只在 LAST 和 ONLY 中设置。',
  32: '发送端遵守连接的路径 MTU。',
  33: '新请求的 PSN 是连续的；READ 的每个响应报文占用一个 PSN。',
  35: '未确认的 PSN 不超过 2^23 个。',
  36: '确认不后退，并且只确认已经发送的报文。',
  40: 'MSN 是已完成消息的计数。',
  41: '请求端遵守信用。',
  44: '出现缺口时，用带有期望 PSN 的 NAK 0x60 应答。',
  45: '在期望的 PSN 到达之前，一个缺口只产生一个 NAK。',
  47: 'NAK 确认它之前的所有报文，请求端从该处继续。',
  49: '缺口之后的报文不引起第二次重启。',
  51: '定时器不早于传输超时触发。',
  52: '定时器在 T 到 4 T 之间触发，T = 4.096 us * 2^timeout。',
  54: '一个请求最多发送 1 + retry_cnt 次。',
  58: '收到 RNR NAK 之后，请求端至少等待其中编码的时间。',
  59: 'rnr_retry 为 7 时无限重试，为 n 时重试 n 次。',
  61: 'READ 响应使用其请求的 PSN，并按位置为 FIRST、MIDDLE、LAST 或 ONLY。',
  62: 'READ 响应携带一个路径 MTU，最后一个携带剩余部分。',
  63: '重新请求的 READ，其地址和长度随 PSN 前移。',
  66: '未完成的 READ 和原子操作不超过响应端接受的数量。',
  68: '零字节的 READ 或 WRITE 不检查 R_Key。',
  80: '致命 NAK 之后不再有应答。',
  81: '致命 NAK 在它之前应发的应答之后发出。',
  82: 'NAK 代码和 AETH 类型在规范的表中；0x64 不用于 RC。',
  83: '被标记的报文产生 CNP，其他报文不产生。',
  84: 'CNP 的格式：PSN 为 0，没有标志，16 个零字节。',
  91: 'CM 消息符合其格式。',
  92: '不发送 REJ 原因 13 和 19。',
  101: '起始 PSN、QPN 和 R_Key 不可预测。',
  112: 'ATOMIC WRITE 携带 8 字节，地址为 8 的倍数，且其 RETH 也如此说明。',
  113: 'FETH 只含放置类型和选择级别，其他位为 0。',
};

export function ruleTitleIn(
  language: Language,
  { rule, title }: { readonly rule: number; readonly title: string },
): string {
  return language === 'zh' ? (TITLES_IN_CHINESE[rule] ?? title) : title;
}
