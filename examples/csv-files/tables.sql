CREATE TABLE deliveries (
  day       date NOT NULL,
  parcel    text NOT NULL,
  recipient text,
  note      text,
  weight_kg numeric(8, 3),
  PRIMARY KEY (day, parcel)
);
