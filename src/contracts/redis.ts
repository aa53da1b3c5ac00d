/** REDIS_URL, and settings of Redis that the service relies on wherever it runs. */

export type RedisAddress = ReturnType<typeof redisAddress>;

/** @param list checked by config.ts: URLs of one scheme, separated by commas; the first one's login holds for all */
export function redisAddress(list: string) {
  const nodes = list.split(',').map((node) => node.trim());
  const { protocol, username, password } = new URL(nodes[0] as string);
  return {
    /** URLs: of a single server, or of nodes of a Cluster by which the others are found. */
    nodes,
    /** For every node of a Cluster: it says where its nodes are, but not how to log in. */
    login: {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  };
}

/**
 * Bytes of a value up to which Redis keeps a hash as one listpack (hash-max-listpack-value, 64 by itself; versions up to 6
 * and Valkey know it as hash-max-ziplist-value). With it a pair takes 155 bytes instead of 213 of a learner with 40 skills,
 * and an event id 44 instead of 75 of one with 60 (MEMORY USAGE, SAMPLES 0).
 */
export const listpackBytes = 1024;

/**
 * Size up to which the append-only file is not rewritten (auto-aof-rewrite-min-size, 64mb by itself). An answer writes 900
 * bytes there, so a small deployment rewrote it every 80,000 answers, at 2 to 5 µs each. Redis reads such a file in 1.6 s
 * when it starts.
 */
export const rewriteSize = '256mb';
