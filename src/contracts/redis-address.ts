/** REDIS_URL taken apart. */

export interface RedisAddress {
  /** URLs: one of a single server, or those of nodes of a Cluster, by which the others are found. */
  readonly nodes: readonly string[];
  /**
   * What every node wants to hear: a Cluster tells the addresses of its nodes, but not how to log in, and the nodes
   * that are found, replicas above all, stand in no URL.
   */
  readonly login: RedisLogin;
}

interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Record<string, never>;
}

/** @param list checked by config.ts: URLs of one scheme, separated by commas; the first one's login is everybody's */
export function redisAddress(list: string): RedisAddress {
  const nodes = list.split(',').map((node) => node.trim());
  const { protocol, username, password } = new URL(nodes[0] as string);
  return {
    nodes,
    login: {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  };
}
