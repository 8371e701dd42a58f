num_pes: 16
l1_size_cstr: 256
l2_size_cstr: 65536
noc_bw_cstr: 16
offchip_bw_cstr: 4
