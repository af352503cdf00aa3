# SPDX-License-Identifier: Apache-2.0
# For scripts of tests with mpirun, sourced: two hosts, each a network namespace with a name of its own, joined by a wire; `mpirun` starts
# processes on the second by a stand-in of ssh. Only root makes namespaces.
# Open MPI itself leaves memory behind when it ends; test_together looks for leaks of cleave.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
# Each start of Open MPI looks for networks that this machine lacks, and hwloc for X displays; after a process has failed mpirun waits a
# second before it kills those that go on. None of this is tested here.
export OMPI_MCA_pml=ob1 HWLOC_COMPONENTS=-gl OMPI_MCA_odls_base_sigkill_timeout=0
host_a=cleave_a_$$
host_b=cleave_b_$$

# hosts_make FOLDER: false if namespaces cannot be made here.
hosts_make() {
  hosts_agent=$1/agent
  ip netns add $host_a 2>/dev/null && ip netns add $host_b 2>/dev/null && ip -n $host_a link set lo up &&
    ip link add va$$ netns $host_a type veth peer name vb$$ netns $host_b 2>/dev/null || return 1
  ip -n $host_a addr add 10.77.0.1/24 dev va$$ && ip -n $host_a link set va$$ up
  ip -n $host_b addr add 10.77.0.2/24 dev vb$$ && ip -n $host_b link set vb$$ up && ip -n $host_b link set lo up
  cat >"$hosts_agent" <<SH
#!/bin/sh
shift
exec ip netns exec $host_b unshare --uts sh -c 'hostname host-b; exec sh -c "\$*"' sh "\$@"
SH
  chmod +x "$hosts_agent"
}

hosts_end() {
  ip netns del $host_a 2>/dev/null
  ip netns del $host_b 2>/dev/null
}

# hosts N COMMAND...: by N processes on each host.
hosts() {
  hosts_each=$1
  shift
  ip netns exec $host_a unshare --uts sh -c 'hostname host-a; exec "$@"' sh mpirun --bind-to none \
    --host 10.77.0.1:"$hosts_each",10.77.0.2:"$hosts_each" -n $((2 * hosts_each)) --mca plm_rsh_agent "$hosts_agent" --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$@"
}

# aborted COMMAND...: runs a command in which a process ends the others by MPI_Abort. Open MPI 4.1.4's mpirun itself may crash then
# (seen once), when it has printed everything and frees what it had for their messages. The command runs again if it does.
aborted() {
  for aborted_try in 1 2; do
    "$@" >aborted.out 2>&1 </dev/null
    aborted_status=$?
    [ "$aborted_status" -eq 139 ] && grep -q ' mpirun(' aborted.out || break
  done
  cat aborted.out
  return "$aborted_status"
}
