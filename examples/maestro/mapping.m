// Two layers, each with input channels over clusters of 8 elements.
Network small {
 Layer conv {
  Type: CONV
  Stride { X: 1, Y: 1 }
  Dimensions { K: 8, C: 8, R: 3, S: 3, Y: 16, X: 16 }
  Dataflow {
   SpatialMap(1,1) K;
   TemporalMap(Sz(R),1) Y;
   TemporalMap(Sz(S),1) X;
   TemporalMap(Sz(R),Sz(R)) R;
   TemporalMap(Sz(S),Sz(S)) S;
   Cluster(8, P);
   SpatialMap(1,1) C;
  }
 }
 Layer pointwise {
  Type: CONV
  Stride { X: 1, Y: 1 }
  Dimensions { K: 16, C: 16, R: 1, S: 1, Y: 14, X: 14 }
  Dataflow {
   SpatialMap(1,1) K;
   TemporalMap(8,8) C;
   TemporalMap(1,1) Y;
   TemporalMap(1,1) X;
   Cluster(8, P);
   SpatialMap(1,1) C;
  }
 }
}
